"""`kubestow scheduler`: a replacement for kube-scheduler."""

import json
import sys
from typing import Any

import click

from kubestow.cli.scheduler.early_signals import EarlySignals
from kubestow.cli.scheduler.flags import FLAGS, GROUPS, Flag, normalised
from kubestow.cli.scheduler.settings import (
    Flags,
    configuration_of,
    features_of,
    log_options_of,
    metric_options_of,
    plugins_of,
    warn_of_overridden_flags,
    write_configuration,
)
from kubestow.telemetry.log_setup import LogOutput


class _Value(click.ParamType[Any]):
    """Parses the values of one flag."""

    def __init__(self, flag: Flag) -> None:
        self._flag = flag
        self.name = flag.type.name or "bool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._flag.type.parse(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


def _option(flag: Flag) -> click.Option:
    names = [f"--{flag.name}"] + ([f"-{flag.short}"] if flag.short else [])
    return click.Option(
        [*names, flag.parameter],
        type=_Value(flag),
        multiple=flag.type.adds_up,
        metavar=flag.type.name or None,
        help=flag.help,
    )


class _WrongUsage(click.UsageError):
    """A usage error with the exit code of kube-scheduler."""

    exit_code = 1

    def __init__(self, error: click.UsageError) -> None:
        super().__init__(error.format_message(), error.ctx)


class _Command(click.Command):
    """Accepts flags in the forms of kube-scheduler; groups the flags in help; exits with 1 on wrong usage."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            stray = super().parse_args(ctx, normalised(args))
            if any(stray):
                quoted = " ".join(json.dumps(argument, ensure_ascii=False) for argument in stray)
                raise click.UsageError(f'"{ctx.command_path}" does not take any arguments, got [{quoted}]', ctx)
        except click.UsageError as error:
            raise _WrongUsage(error) from error
        return stray

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        for group, flags in GROUPS.items():
            rows = [_row(flag) for flag in flags]
            if group == "Global":
                rows.insert(0, ("-h, --help", "Show this text and exit."))
            with formatter.section(f"{group} flags"):
                formatter.write_dl(rows)


def _row(flag: Flag) -> tuple[str, str]:
    name = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
    words = flag.help
    if flag.ignored:
        words += f" No effect: {flag.ignored}."
    if flag.default_text:
        words += f" (default {flag.default_text})"
    return f"{name} {flag.type.name}".rstrip(), words


def _flags(context: click.Context, parameters: dict[str, Any]) -> Flags:
    values, given = {}, set()
    for flag in FLAGS.values():
        value = parameters[flag.parameter]
        source = context.get_parameter_source(flag.parameter)
        if source is not click.core.ParameterSource.COMMANDLINE:
            values[flag.name] = flag.default
            continue
        given.add(flag.name)
        values[flag.name] = tuple(item for part in value for item in part) if flag.type.adds_up else value
    return Flags(values, frozenset(given))


def _run(context: click.Context, **parameters: Any) -> None:
    """Schedule pods: watch a cluster, find a node for every pod that has none, and bind it there.

    A drop-in replacement for kube-scheduler, with its flags, configuration, decisions, events and metrics.
    """
    flags = _flags(context, parameters)
    if flags["version"]:
        # Imported only now: help and usage errors must stay fast.
        from kubestow.cli.scheduler.process import print_version

        print_version(raw=flags["version"] == "raw")
        return
    features = features_of(flags)
    plugins = plugins_of(flags)
    configuration = configuration_of(flags, features, plugins)
    logs = log_options_of(flags)
    metrics = metric_options_of(flags)
    output = LogOutput(logs)
    output.open()
    try:
        warn_of_overridden_flags(flags)
        if flags["write-config-to"]:
            write_configuration(flags["write-config-to"], configuration)
            return
        from kubestow.cli.scheduler.process import run

        code = run(flags, configuration, features, plugins, output, metrics, context.ensure_object(EarlySignals))
    finally:
        output.close()
    sys.exit(code)


command = _Command(
    "scheduler",
    context_settings={"max_content_width": 120, "allow_extra_args": True},
    params=[_option(flag) for flag in FLAGS.values()],
    callback=click.pass_context(_run),
    help=_run.__doc__,
    options_metavar="[FLAGS]",
)
