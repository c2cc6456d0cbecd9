"""Helpers of several commands: the error of a command, shared options, and a counter of simulations.

Everything but click is imported when it is needed, so that help stays fast.
"""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kubestow.cli.terminal import trusted

if TYPE_CHECKING:
    from kubestow.config.features import Features
    from kubestow.plugin.loading import PluginCollection

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_RETURN = trusted("\r")


class CommandError(click.ClickException):
    """The command is not possible: each line of the message is a reason, an indented one a detail of the one before."""

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            click.echo(line if line.startswith(" ") else f"Error: {line}", file, err=True)


class CommandGroup(click.Group):
    """A group of commands that suggests the commands with similar names for one that does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            # Imported only now: for an error.
            from difflib import get_close_matches

            similar = get_close_matches(args[0], self.list_commands(ctx))
            hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


def _collected(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> "PluginCollection":
    from kubestow.plugin.loading import PluginCollection, PluginLoadError

    try:
        return PluginCollection(value)
    except PluginLoadError as error:
        raise click.BadParameter(str(error), context, parameter) from None


class PollData(dict[str, list[tuple[float, Any]]]):
    """The values of --poll-data with their times, by plugin, or by plugin and function as in `TargetLoad.fetch`."""

    given: tuple[str, ...] = ()
    """The arguments on the command line."""

    @property
    def latest(self) -> dict[str, Any]:
        """The last values."""
        return {name: samples[-1][1] for name, samples in self.items() if samples}

    def require_plugins(self, *loaded: "PluginCollection") -> None:
        """Raise UsageError for a value of a plugin that is in none of the collections."""
        names = sorted({one.name for plugins in loaded for one in plugins.loaded})
        for name in self:
            if name.partition(".")[0] not in names:
                known = f"there are: {', '.join(names)}" if names else "--plugin or --config names custom plugins"
                raise click.UsageError(f"--poll-data: {name}: there is no such plugin; {known}")


def _polled(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> PollData:
    """Return the values of --poll-data."""
    found = PollData()
    if not given:
        return found
    # Imported only now: few commands get values.
    from kubestow.cli.poll_data import samples_in

    for one in given:
        name, equals, file = one.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{one!r}: write PLUGIN=FILE, such as TargetLoad=load.json")
        try:
            found[name] = samples_in(Path(file).read_bytes())
        except OSError as error:
            raise click.BadParameter(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise click.BadParameter(f"{file}: {error}") from None
    found.given = given
    return found


plugin_option: Decorator = click.option(
    "--plugin",
    "plugins",
    metavar="FILE|MODULE",
    multiple=True,
    callback=_collected,
    help="Custom plugins: a Python file or a module; repeatable. The configuration enables them by name.",
)
poll_data_option: Decorator = click.option(
    "--poll-data",
    "polled",
    metavar="PLUGIN=FILE",
    multiple=True,
    callback=_polled,
    help="Value that a plugin polls, as JSON; or lines of {time: SECONDS, value: ...}; repeatable.",
)
devices_option: Decorator = click.option(
    "--devices",
    default="",
    metavar="KIND|N|FILE",
    help="Devices of each node: gpus, partitionable-gpus or a number of GPUs; or a file of ResourceSlices.",
)
repair_option: Decorator = click.option(
    "--repair",
    is_flag=True,
    help="Start with the sound objects of a damaged --data-dir; a copy of the damaged files is kept.",
)
decision_nodes_option: Decorator = click.option(
    "--decision-nodes",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="COUNT",
    help="Number of nodes, best first, whose plugin results are recorded for each decision.",
)
timings_option: Decorator = click.option(
    "--timings", "timed", is_flag=True, help="Report the run time of plugins on this machine."
)


def require_out(out: "Path | None") -> None:
    """Raise UsageError if flags about output are given without `out`."""
    context = click.get_current_context()
    for name, flag in (("timed", "--timings"), ("decision_nodes", "--decision-nodes")):
        if out is None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag}: has no effect without --out, the folder of reports and decisions")


def _features(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> "Features":
    from kubestow.config.features import FeatureGateError, Features

    try:
        return Features.parse(",".join(value))
    except FeatureGateError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def feature_gates_option(help_text: str) -> Decorator:
    """Return the option --feature-gates (parameter `features`), for commands without kube-scheduler's other flags."""
    return click.option(
        "--feature-gates", "features", metavar="A=true,B=false", multiple=True, callback=_features, help=help_text
    )


def log_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Add the logging flags to a command, which is called with `logs=LogOptions(...)`.

    Without -v only warnings and errors are logged.
    """

    @click.option(
        "-v", "--v", "verbosity", type=click.IntRange(0), help="Log level of informational messages.  [default: none]"
    )
    @click.option("--vmodule", default="", metavar="PATTERN=N,...", help="Log more from some modules.")
    @click.option("--logging-format", "form", default="text", show_default=True, type=click.Choice(["text", "json"]))
    @wraps(command)
    def flagged(*, verbosity: int | None, vmodule: str, form: str, **others: Any) -> None:
        from kubestow.telemetry.log_setup import LogOptions, parse_modules
        from kubestow.telemetry.logs import WARNINGS_ONLY

        try:
            modules = parse_modules(vmodule)
        except ValueError as error:
            raise click.UsageError(f"--vmodule: {error}") from None
        command(logs=LogOptions(form, WARNINGS_ONLY if verbosity is None else verbosity, modules), **others)

    return flagged


def report_count(done: int, total: int) -> None:
    """Show the number of finished simulations on one line, if standard error is a terminal."""
    if sys.stderr.isatty():
        click.echo(f"{_RETURN}{done} of {total} simulated", nl=done == total, err=True)
