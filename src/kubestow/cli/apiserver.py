"""`kubestow apiserver`: the embedded control plane in its own process."""

import asyncio
import gc
import signal
from pathlib import Path
from typing import Any

import click
import uvloop

from kubestow.apiserver import ControlPlane, Options, Pace, StartError
from kubestow.cli.support import devices_option, feature_gates_option, log_flags, repair_option
from kubestow.telemetry.log_setup import LogOptions, LogOutput


@click.command("apiserver")
@click.option("--port", default=6443, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Folder of objects; else in memory.")
@repair_option
@click.option("--nodes", default=0, show_default=True, type=click.IntRange(0), help="Plain nodes to create.")
@click.option("--nodes-file", type=click.Path(path_type=Path, dir_okay=False), help="Nodes to create, as YAML.")
@devices_option
@click.option("--kubelets/--no-kubelets", default=True, show_default=True, help="Simulate kubelets on the nodes.")
@click.option(
    "--controllers",
    default="*",
    show_default=True,
    help="Controllers to run: * for all, NAME for one, -NAME for all but one, none to run kube-controller-manager.",
)
@click.option(
    "--pod-start-seconds", default=0.5, show_default=True, type=click.FloatRange(0), help="From bound to Running."
)
@click.option(
    "--pod-run-seconds", default=2.0, show_default=True, type=click.FloatRange(0), help="Run time of pods of jobs."
)
@click.option("--token", help="The administrator's bearer token; generated if not given.")
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help='Lines of token,user,uid,"groups".')
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write the kubeconfig to; folders are created as needed.",
)
@click.option(
    "--tls-san", "extra_names", multiple=True, help="Another name or address for the certificate; repeatable."
)
@click.option(
    "--authorization-mode",
    type=click.Choice(["Fixed", "RBAC"]),
    default="Fixed",
    show_default=True,
    help="Authorization by a small fixed policy, or by roles and their bindings.",
)
@click.option(
    "--audit-log", type=click.Path(path_type=Path, dir_okay=False), help="Write audit events here, as JSON lines."
)
@feature_gates_option(
    "Features to turn on or off. GenericWorkload, PodGroupPreemptionPolicy, WorkloadWithJob, "
    "InPlacePodVerticalScalingSchedulerPreemption, CompositePodGroup, DRAConsumableCapacity, "
    "DRADeviceCompatibilityGroups, DRADeviceTaints, DRADeviceTaintRules, DRAListTypeAttributes, "
    "DRAOptionalNodeOperations, DRAPartitionableDevicesType, DRAWorkloadResourceClaims and "
    "TaintTolerationComparisonOperators have an effect."
)
@click.option("--enable-admission-plugins", default="", help="Plugins to enable besides the default ones: A,B.")
@click.option("--disable-admission-plugins", default="", help="Default plugins to disable: A,B.")
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
    """Run a Kubernetes API server with controllers and simulated nodes, without a scheduler.

    Prints the path of the kubeconfig. Press Ctrl-C to stop.
    """
    options = Options(
        pace=Pace(start=pod_start_seconds, run=pod_run_seconds),
        rbac=authorization_mode == "RBAC",
        enable_admission_plugins=_names(enable_admission_plugins),
        disable_admission_plugins=_names(disable_admission_plugins),
        **others,
    )
    # Objects are long-lived: collecting every few hundred allocations is wasted time.
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
