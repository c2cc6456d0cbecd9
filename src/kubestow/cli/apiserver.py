"""`kubestow apiserver`: the embedded control plane in a process of its own."""

import asyncio
import gc
import signal
from pathlib import Path
from typing import Any

import click
import uvloop

from kubestow.apiserver import ControlPlane, Options, Pace, StartError
from kubestow.cli.support import devices_option, feature_gates_option, log_flags
from kubestow.telemetry.log_setup import LogOptions, LogOutput


@click.command("apiserver")
@click.option("--port", default=6443, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep objects here; else in memory.")
@click.option("--nodes", default=0, show_default=True, type=click.IntRange(0), help="Plain nodes to create.")
@click.option("--nodes-file", type=click.Path(path_type=Path, dir_okay=False), help="Nodes to create, as YAML.")
@devices_option
@click.option("--kubelets/--no-kubelets", default=True, show_default=True, help="Let nodes act.")
@click.option(
    "--controllers",
    default="*",
    show_default=True,
    help="Those to run: * all, a name one, -name all but one; none leaves it to kube-controller-manager.",
)
@click.option("--pod-start-seconds", default=0.5, show_default=True, type=click.FloatRange(0), help="Bound to Running.")
@click.option(
    "--pod-run-seconds", default=2.0, show_default=True, type=click.FloatRange(0), help="Time pods of jobs run."
)
@click.option("--token", help="The administrator's bearer token; made up if not given.")
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help='Lines of token,user,uid,"groups".')
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the kubeconfig; folders are made as needed.",
)
@click.option(
    "--tls-san", "extra_names", multiple=True, help="Another name or address for the certificate; repeatable."
)
@click.option(
    "--authorization-mode",
    type=click.Choice(["Fixed", "RBAC"]),
    default="Fixed",
    show_default=True,
    help="Who may do what: a small fixed policy, or roles and their bindings.",
)
@click.option("--audit-log", type=click.Path(path_type=Path, dir_okay=False), help="Write who did what, as JSON lines.")
@feature_gates_option(
    "Features to turn on or off. GenericWorkload, WorkloadWithJob, DRAConsumableCapacity, DRADeviceTaints, "
    "DRADeviceTaintRules and DRAListTypeAttributes make a difference."
)
@click.option("--enable-admission-plugins", default="", help="Names with commas: more than act by default.")
@click.option("--disable-admission-plugins", default="", help="Names with commas: less than act by default.")
@log_flags
def command(
    pod_start_seconds: float,
    pod_run_seconds: float,
    authorization_mode: str,
    enable_admission_plugins: str,
    disable_admission_plugins: str,
    logs: LogOptions,
    **others: Any,
) -> None:
    """Run a Kubernetes API server with controllers and stand-in nodes, and no scheduler.

    It prints where the kubeconfig is; Ctrl-C stops it.
    """
    options = Options(
        pace=Pace(start=pod_start_seconds, run=pod_run_seconds),
        rbac=authorization_mode == "RBAC",
        enable_admission_plugins=_names(enable_admission_plugins),
        disable_admission_plugins=_names(disable_admission_plugins),
        **others,
    )
    # Objects stay for long: the collector need not look at all of them every few hundred allocations.
    gc.set_threshold(50_000, 20, 100)
    output = LogOutput(logs)
    output.open()
    try:
        uvloop.run(_serve(options))
    except StartError as error:
        raise click.ClickException(str(error)) from error
    finally:
        output.close()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


async def _serve(options: Options) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with ControlPlane(options) as plane:
        click.echo(f"listening on {plane.url}")
        click.echo(f"export KUBECONFIG={plane.kubeconfig_path}")
        await stopping.wait()
