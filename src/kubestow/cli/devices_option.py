"""--devices, for the commands that run stand-in nodes."""

from collections.abc import Callable
from typing import Any

import click

devices_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--devices",
    default="",
    metavar="KIND|N|FILE",
    help="Devices of each node: gpus, partitionable-gpus or a number of GPUs; or a file of ResourceSlices.",
)
