"""The commands around simulations: `simulate`, `replay`, `record`, `capacity`, `compare`, `sweep` and `view`.

This module only parses command lines. What runs a command is imported when it runs, so that help and usage errors stay
fast.
"""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import (
    CommandError,
    Decorator,
    PollData,
    decision_nodes_option,
    feature_gates_option,
    plugin_option,
    poll_data_option,
    require_out,
    timings_option,
)

_out_option: Decorator = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder to write report, results and decisions to."
)
_config_option: Decorator = click.option(
    "--config", "configuration", metavar="FILE", help="Configuration of the scheduler; `default` is the default one."
)


def _inputs(what: str, *, is_pair: bool = False) -> Decorator:
    """Add the arguments of what to run, named `what`, and --config to a command.

    It is called with `files` and `configuration`, which is a tuple of two with `is_pair`. `CONFIG --on FILE` is the
    same as `FILE --config CONFIG`.
    """
    count = _BOTH if is_pair else 1
    config_option = _config_option
    if is_pair:
        words = "Configuration of A, then of B; `default` is the default one."
        config_option = click.option("--config", "configuration", metavar="FILE", multiple=True, help=words)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.argument("given", metavar=what, nargs=-1)
        @click.option("--on", metavar="FILE", multiple=True, hidden=True)
        @config_option
        @wraps(command)
        def run(
            *, given: tuple[str, ...], on: tuple[str, ...], configuration: tuple[str, ...] | str | None, **others: Any
        ) -> None:
            named = (configuration,) if isinstance(configuration, str) else configuration or ()
            files, found = (on, (*named, *given)) if on else (given, named)
            if not files:
                raise click.UsageError(f"Missing argument '{what}'.")
            if len(found) > count or (is_pair and len(found) < count):
                wanted = (
                    "two configurations: --config A --config B" if is_pair else "one configuration at most: --config"
                )
                raise click.UsageError(f"the command takes {wanted}, and {what}; not {len(found)} configurations")
            command(files=files, configuration=found if is_pair else next(iter(found), None), **others)

        return run

    return decorate


_BOTH = 2
_SORTS = ("name", "cpu.request", "cpu.limit", "mem.request", "mem.limit")
_VARY = (
    "Field and values, such as config.percentageOfNodesToScore=10,50 or scenario.spec.nodes[0].count=4..9; repeatable."
)
_OBJECTIVES = ("wait", "wait95", "pending", "evictions", "fragmentation", "bound", "cpu")


def _print_example(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from kubestow.simulator.scenario.example import EXAMPLE

        click.echo(EXAMPLE, nl=False)
        context.exit()


@click.command("simulate", context_settings={"max_content_width": 120})
@_inputs("SCENARIO...")
@click.option(
    "--init", is_flag=True, is_eager=True, expose_value=False, callback=_print_example, help="Print an example."
)
@click.option("--seed", type=click.IntRange(0), help="Seed of all random choices. [default: the scenario's]")
@_out_option
@click.option("--check", "checked", is_flag=True, help="Check invariants after every event.")
@timings_option
@decision_nodes_option
@feature_gates_option("Features of the scheduler to turn on or off, such as pod groups.")
@plugin_option
@poll_data_option
def simulate(out: Path | None, **options: Any) -> None:
    """Simulate a cluster in virtual time and report the results.

    SCENARIO is files or folders, `-` is standard input: Kubernetes objects, as kubectl writes them, and a Scenario that
    lists events and their times. Ctrl-C ends a run early; its results so far are reported.
    """
    require_out(out)
    from kubestow.cli.simulate import process

    process.report(process.simulate(out=out, **options), out)


@click.command("replay", context_settings={"max_content_width": 120})
@_inputs("RECORDING")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random choices.")
@_out_option
@click.option(
    "--speed",
    type=click.Choice(["virtual"]),
    default="virtual",
    expose_value=False,
    help="Replay as fast as possible.",
)
@timings_option
@decision_nodes_option
@plugin_option
@poll_data_option
def replay(files: tuple[str, ...], out: Path | None, **options: Any) -> None:
    """Replay a recording: the cluster changes as recorded, and the scheduler decides again."""
    require_out(out)
    if len(files) > 1:
        raise click.UsageError(f"the command takes one recording, not {len(files)}")
    from kubestow.cli.simulate import process

    process.require_recording(files[0])
    process.report(process.simulate(files, out=out, **options), out)


@click.command("record", context_settings={"max_content_width": 120})
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--hash-names", is_flag=True, help="Replace names by hashes; requires a new file.")
@click.option(
    "--watch",
    metavar="PLURAL.VERSION.GROUP",
    multiple=True,
    help="Also record this custom resource, such as elasticquotas.v1alpha1.scheduling.x-k8s.io; repeatable.",
)
@_config_option
@plugin_option
def record(file: Path, kubeconfig: str, context: str, hash_names: bool, watch: tuple[str, ...], **options: Any) -> None:
    """Record a live cluster until Ctrl-C. Appends to an existing recording.

    With --plugin, the kinds that the plugins watch and the values that they poll are recorded as well; --config has
    their arguments.

    Requires only permissions to get, list and watch. Environment, commands and arguments of containers are never
    stored, nor are Secrets and ConfigMaps. `kubestow replay FILE` replays the recording.
    """
    if hash_names and file.exists() and file.stat().st_size:
        # Every run has its own salt, which is not stored.
        raise click.UsageError(f"--hash-names: {file} exists and has hashes with another salt: name a new file")
    from kubestow.cli.simulate.record import run

    run(file, kubeconfig, context, hash_names=hash_names, watch=watch, **options)


@click.command("capacity", context_settings={"max_content_width": 120})
@click.option("--podspec", metavar="FILE", multiple=True, help="Pods to place in turn, or a pod group; repeatable.")
@click.option("--cluster", metavar="FILE", multiple=True, help="Files of objects, instead of a live cluster.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option(
    "--max-limit", "limit", type=click.IntRange(0), default=0, help="Maximum number of pods. [default: as many as fit]"
)
@click.option("--exclude-nodes", metavar="A,B", default="", help="Nodes to exclude.")
@_config_option
@plugin_option
@poll_data_option
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Format, with cluster-capacity's fields.")
@click.option("--verbose", is_flag=True, help="Also show the nodes of the pods.")
@click.option("--pods", "with_pods", is_flag=True, help="Also list the pods of each node.")
@click.option("--sort", type=click.Choice(_SORTS), default="name", help="Order of the rows.", show_default=True)
def capacity(cluster: tuple[str, ...], kubeconfig: str, context: str, exclude_nodes: str, **options: Any) -> None:
    """Show cluster utilization; with --podspec, how many more pods fit, and why the next one does not.

    \b
    kubestow capacity                                          requested and allocatable resources
    kubestow capacity --podspec pod.yaml                       how many more of this pod fit
    kubestow capacity --podspec pod.yaml --cluster all.yaml    the same without a cluster

    Does not write to the cluster.
    """
    for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
        if cluster and value:
            raise click.UsageError(f"{option} applies to a live cluster, --cluster to files; give one of them")
    from kubestow.cli.simulate.capacity import Request, report_capacity

    excluded = tuple(name.strip() for name in exclude_nodes.split(",") if name.strip())
    report_capacity(Request(cluster=cluster, kubeconfig=kubeconfig, context=context, exclude=excluded, **options))


def _plugins_of_side_option(flag: str, text: str) -> Decorator:
    return click.option(flag, metavar="FILE|MODULE", multiple=True, help=f"{text}; repeatable.")


def _python_option(side: str) -> Decorator:
    text = f"Run {side} with the kubestow of this Python, such as old/bin/python."
    return click.option(f"--python-{side.lower()}", metavar="PYTHON", help=text)


@click.command("compare", context_settings={"max_content_width": 120})
@_inputs("SCENARIO|RECORDING...", is_pair=True)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Number of seeds, starting at 1."
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for report.html, results.json and all runs."
)
@click.option("-o", "--output", type=click.Choice(["json"]), help="Output format.")
@_plugins_of_side_option("--plugin", "Custom plugins for both")
@_plugins_of_side_option("--plugin-a", "Custom plugins for A only")
@_plugins_of_side_option("--plugin-b", "Custom plugins for B only")
@_python_option("A")
@_python_option("B")
@poll_data_option
@click.option("--feature-gates", metavar="A=true,B=false", multiple=True, help="Features to turn on or off, for both.")
def compare(
    files: tuple[str, ...],
    configuration: tuple[str, str],
    seeds: int,
    out: Path | None,
    output: str | None,
    plugin: tuple[str, ...],
    plugin_a: tuple[str, ...],
    plugin_b: tuple[str, ...],
    python_a: str | None,
    python_b: str | None,
    polled: PollData,
    feature_gates: tuple[str, ...],
) -> None:
    """Run two schedulers on the same scenario or recording, and show the differences and their reasons.

    \b
    kubestow compare scenario.yaml --config default --config other.yaml

    The two may differ in configuration, in custom plugins (which a configuration enables by name), or in the version of
    kubestow, installed in another Python.
    """
    from kubestow.cli.simulate.compare import Side, run

    a, b = configuration
    sides = Side(a, (*plugin, *plugin_a), python_a), Side(b, (*plugin, *plugin_b), python_b)
    try:
        run(sides, files, seeds, out, ",".join(feature_gates), polled, as_json=output is not None)
    except KeyboardInterrupt:
        kept = "" if out is None else f"; the completed runs are in {out}"
        click.echo(f"Stopped: nothing was compared{kept}.", err=True)
        sys.exit(130)


@click.command("sweep", context_settings={"max_content_width": 120})
@_inputs("SCENARIO...")
@click.option("--vary", metavar="FIELD=V,V,...", multiple=True, help=_VARY)
@click.option("--list", "listed", type=click.Path(path_type=Path, dir_okay=False), help="CSV: a column per field.")
@click.option("--random", "draws", type=click.IntRange(1), default=None, help="Number of combinations to draw.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of seeds, from 1.")
@plugin_option
@poll_data_option
@click.option("--by", "objective", type=click.Choice(_OBJECTIVES), default="wait", show_default=True, help="Objective.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for results; an interrupted sweep continues.",
)
@click.option("--workers", type=click.IntRange(1), help="Number of processes. [default: one per core]")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://HOST:8786; needs kubestow[dask].")
@click.option("--ray", metavar="ADDRESS", help="Run on a Ray cluster, such as HOST:6379 or auto; needs kubestow[ray].")
def sweep(draws: int | None, **options: Any) -> None:
    """Simulate a scenario with many configurations, seeds or sizes, and rank the results.

    A field begins with `config.` for the scheduler's configuration, or `scenario.` for the Scenario. All combinations
    of lists are simulated; values of a range LOW..HIGH are drawn with --random. An interrupted sweep continues when it
    is started again with the same --out.
    """
    from kubestow.cli.simulate.sweep import Request, run
    from kubestow.simulator.sweeping import SweepStopped

    try:
        run(Request(draws=draws or 0, **options))
    except SweepStopped as stopped:
        click.echo(f"Stopped: {stopped}. Run the same command with the same --out to continue.", err=True)
        sys.exit(130)


@click.command("view", context_settings={"max_content_width": 120})
@click.argument("results", metavar="DIR|RECORDING", type=click.Path(path_type=Path))
@click.argument("other", metavar="[DIR|RECORDING]", required=False, type=click.Path(path_type=Path))
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the page; 0: any free port.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration to replay recordings with.")
@plugin_option
def view(results: Path, other: Path | None, **options: Any) -> None:
    """Show the results of `kubestow simulate --out DIR` or `kubestow replay --out DIR`, or a recording.

    A recording is replayed first. With two arguments, the differences are shown, too. Prints the address of the page,
    which only this machine can reach. Press Ctrl-C to stop.
    """
    from kubestow.cli.simulate.view import serve
    from kubestow.server.http.listening import ListenError
    from kubestow.simulator.page_files import ViewError

    try:
        serve([results] if other is None else [results, other], **options)
    except (ViewError, ListenError) as error:
        raise CommandError(str(error)) from None
