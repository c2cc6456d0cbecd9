"""`kubestow compare`: two configurations, plugin files or versions on one scenario or recording."""

import sys
from pathlib import Path

import click

from kubestow.cli.support import Decorator, fail


def _plugin_option(flag: str, text: str) -> Decorator:
    return click.option(flag, metavar="FILE|MODULE", multiple=True, help=f"{text}; repeatable.")


def _python_option(side: str) -> Decorator:
    text = f"Run {side} with the kubestow of this Python, such as old/bin/python."
    return click.option(f"--python-{side.lower()}", metavar="PYTHON", help=text)


@click.command("compare", context_settings={"max_content_width": 120})
@click.argument("a", metavar="CONFIG_A")
@click.argument("b", metavar="CONFIG_B")
@click.option("--on", "files", metavar="FILE", multiple=True, required=True, help="Scenario or recording; repeatable.")
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Number of seeds, starting at 1."
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for report.html, results.json and all runs."
)
@click.option("-o", "--output", type=click.Choice(["json"]), help="Output format.")
@_plugin_option("--plugin", "Custom plugins for both")
@_plugin_option("--plugin-a", "Custom plugins for A only")
@_plugin_option("--plugin-b", "Custom plugins for B only")
@_python_option("A")
@_python_option("B")
@click.option("--feature-gates", metavar="A=true,B=false", multiple=True, help="Features to turn on or off, for both.")
def command(
    a: str,
    b: str,
    files: tuple[str, ...],
    seeds: int,
    out: Path | None,
    output: str | None,
    plugin: tuple[str, ...],
    plugin_a: tuple[str, ...],
    plugin_b: tuple[str, ...],
    python_a: str | None,
    python_b: str | None,
    feature_gates: tuple[str, ...],
) -> None:
    """Run two schedulers on the same scenario or recording, and show the differences and their reasons.

    CONFIG_A and CONFIG_B are files, or `default`. The two may differ in configuration, in custom plugins (which a
    configuration enables by name), or in the version of kubestow, installed in another Python.
    """
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.simulate.compare_process import Side, run
    from kubestow.cli.simulate.process import SimulateError

    sides = Side(a, (*plugin, *plugin_a), python_a), Side(b, (*plugin, *plugin_b), python_b)
    try:
        run(sides, files, seeds, out, ",".join(feature_gates), as_json=output is not None)
    except SimulateError as error:
        fail(error)
    except KeyboardInterrupt:
        kept = "" if out is None else f"; the completed runs are in {out}"
        click.echo(f"Stopped: nothing was compared{kept}.", err=True)
        sys.exit(130)
