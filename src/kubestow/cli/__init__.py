"""The command `kubestow`.

The module of a subcommand is imported only when it is invoked, so that help and version stay fast.
"""

import errno
import gc
import importlib
import importlib.util
import os
import sys
from typing import Any, NamedTuple

import click

from kubestow import __version__
from kubestow.cli.support import CommandGroup
from kubestow.cli.terminal import guarded_output


class _Entry(NamedTuple):
    module: str
    help: str
    stores_early_signals: bool = False
    """Whether signals that arrive while the command is loading are stored for it."""
    attribute: str = "command"
    """The name of the click command in the module."""


_SIMULATIONS = "kubestow.cli.simulate.commands"
_SUBCOMMANDS = {
    "apiserver": _Entry("kubestow.cli.apiserver", "Run the embedded Kubernetes API server."),
    "capacity": _Entry(_SIMULATIONS, "Show cluster utilization and how many more pods fit.", attribute="capacity"),
    "compare": _Entry(
        _SIMULATIONS, "Run two configurations on one scenario and show the differences.", attribute="compare"
    ),
    "config": _Entry("kubestow.cli.config", "Write, check, complete and translate scheduler configurations."),
    "doctor": _Entry("kubestow.cli.doctor.command", "Check a cluster before Kubestow replaces kube-scheduler."),
    "explain": _Entry(
        "kubestow.cli.explain.command", "Explain where a pod was placed or why it is pending, and what would help."
    ),
    "plugin": _Entry("kubestow.cli.plugin.command", "Create, check and list plugins written in Python."),
    "record": _Entry(
        _SIMULATIONS, "Record the objects of a live cluster and their changes in a file.", attribute="record"
    ),
    "replay": _Entry(_SIMULATIONS, "Replay a recording with this scheduler and a configuration.", attribute="replay"),
    "scheduler": _Entry(
        "kubestow.cli.scheduler.command", "Schedule the pods of a cluster: a replacement for kube-scheduler.", True
    ),
    "simulate": _Entry(
        _SIMULATIONS, "Simulate a cluster in virtual time and report the results.", attribute="simulate"
    ),
    "sweep": _Entry(_SIMULATIONS, "Simulate many configurations and rank the results.", attribute="sweep"),
    "up": _Entry("kubestow.cli.up.command", "Run a whole cluster: API server, nodes and scheduler."),
    "view": _Entry(_SIMULATIONS, "Show the results of a simulation, or a recording, on a web page.", attribute="view"),
}


def _is_installed(name: str) -> bool:
    return name in _SUBCOMMANDS and importlib.util.find_spec(_SUBCOMMANDS[name].module) is not None


class _LazyGroup(CommandGroup):
    """Lists subcommands from the table; imports a subcommand when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return [name for name in sorted(_SUBCOMMANDS) if _is_installed(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        if not _is_installed(cmd_name):
            return None
        # No code here multiplies matrices; NumPy's threads for that would only spin.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Imported modules stay alive: collecting them is wasted time.
        gc.set_threshold(100_000)
        entry = _SUBCOMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        entry = _SUBCOMMANDS.get(args[0])
        if entry is not None and entry.stores_early_signals:
            # Before anything else is loaded.
            from kubestow.cli.scheduler.early_signals import EarlySignals

            ctx.obj = ctx.with_resource(EarlySignals())
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            with guarded_output():
                return super().main(*args, **extra)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            sys.exit(f"Error: cannot write: {error.strerror}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUBCOMMANDS[name].help) for name in self.list_commands(ctx)])


@click.command(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # also for all subcommands
)
@click.version_option(__version__, prog_name="kubestow")
@click.pass_context
def main(context: click.Context) -> None:
    """kube-scheduler, in Python: the same decisions, plus plugins, explanations and simulation."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
