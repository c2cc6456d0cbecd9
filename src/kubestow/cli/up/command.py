"""`kubestow up`: a whole cluster in one process: API server, simulated nodes, and the scheduler."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import devices_option, feature_gates_option, log_flags, plugin_option, repair_option


@click.command("up", context_settings={"max_content_width": 120})
@click.option("--nodes", type=click.IntRange(0), help="Plain nodes to create. [default: 10 if there are no others]")
@click.option("--nodes-file", type=click.Path(path_type=Path, dir_okay=False), help="Nodes to create, as YAML.")
@devices_option
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Folder of objects; else in memory.")
@repair_option
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@plugin_option
@click.option("--policy-config-file", "policy", metavar="FILE", help="Legacy Policy of the scheduler.")
@feature_gates_option("Features of API server and scheduler to turn on or off.")
@click.option("--port", default=6443, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@click.option("--page-port", default=0, type=click.IntRange(0, 65535), help="Port of the web page; 0: any free port.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write the kubeconfig to; folders are created as needed.",
)
@click.option("--controllers", default="*", show_default=True, help="Controllers to run, as in `kubestow apiserver`.")
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
    """Run a cluster: an API server with simulated nodes, and the scheduler.

    Prints the path of the kubeconfig and shows events on a full screen. With -v, it writes log lines instead. Press
    Ctrl-C to stop.
    """
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.up.process import Settings, run

    run(Settings(**options))
