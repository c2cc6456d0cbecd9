"""`kubestow up`: a whole cluster in one process: API server, nodes that act, and the scheduler."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import devices_option, fail, feature_gates_option, log_flags, plugin_option


@click.command("up", context_settings={"max_content_width": 120})
@click.option("--nodes", type=click.IntRange(0), help="Plain nodes to create. [default: 10, unless there are others]")
@click.option("--nodes-file", type=click.Path(path_type=Path, dir_okay=False), help="Nodes to create, as YAML.")
@devices_option
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep objects here; else in memory.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@plugin_option
@click.option("--policy-config-file", "policy", metavar="FILE", help="Legacy Policy of the scheduler.")
@feature_gates_option("Features of API server and scheduler to turn on or off.")
@click.option("--port", default=6443, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option(
    "--page-port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Of the page that shows what happens; without it, any that is free.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the kubeconfig; folders are made as needed.",
)
@click.option("--controllers", default="*", show_default=True, help="Those to run, as with `kubestow apiserver`.")
@click.option(
    "-f",
    "--filename",
    "manifests",
    metavar="MANIFEST",
    multiple=True,
    help="Objects to apply at the start: a file, a folder or - for standard input; repeatable.",
)
@log_flags
def command(**options: Any) -> None:
    """Run a cluster: an API server with stand-in nodes, and the scheduler in it.

    It prints where the kubeconfig is and shows what happens; Ctrl-C stops it. With -v, log lines come instead of the
    full screen.
    """
    # Imported only now: help and usage errors must not pay for a cluster.
    from kubestow.cli.up.process import Settings, UpError, run

    try:
        run(Settings(**options))
    except UpError as error:
        fail(error)
