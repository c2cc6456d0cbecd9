"""`kubestow config`: write the default configuration, check files, complete one, translate a legacy Policy."""

import sys
from typing import TYPE_CHECKING

import click

from kubestow import config
from kubestow.cli import configuration_file
from kubestow.cli.support import CommandGroup, feature_gates_option, plugin_option
from kubestow.config import ConfigError, Features, policy

if TYPE_CHECKING:
    from kubestow.plugin.loading import PluginCollection

_feature_gates = feature_gates_option("Feature gates of the scheduler; they change defaults and validation.")


def _lines(file: str, error: ConfigError) -> str:
    return "\n".join(f"{file}: {problem}" for problem in error.problems)


@click.group(cls=CommandGroup)
def command() -> None:
    """Write, check, complete and translate scheduler configurations (KubeSchedulerConfiguration v1, YAML or JSON)."""


@command.command()
@_feature_gates
def default(features: Features) -> None:
    """Write the default configuration."""
    click.echo(config.dump(config.default(features)), nl=False)


@command.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@_feature_gates
@plugin_option
def validate(files: tuple[str, ...], features: Features, plugins: "PluginCollection") -> None:
    """Check configuration files; each problem is printed as a line `FILE: field: message`.

    Exits with 1 if there is a problem. `-` is standard input.
    """
    failed = False
    for file in files:
        try:
            configuration_file.load(file, features, plugins)
        except ConfigError as error:
            failed = True
            click.echo(_lines(file, error))
        else:
            click.echo(f"{file}: valid")
    sys.exit(1 if failed else 0)


@command.command()
@click.argument("file", metavar="FILE")
@_feature_gates
@plugin_option
def complete(file: str, features: Features, plugins: "PluginCollection") -> None:
    """Write a configuration with all defaults filled in, as the scheduler uses it.

    `-` is standard input.
    """
    try:
        completed = configuration_file.load(file, features, plugins)
    except ConfigError as error:
        click.echo(_lines(file, error), err=True)
        sys.exit(1)
    click.echo(config.dump(completed), nl=False)


@command.command()
@click.argument("file", metavar="FILE")
@_feature_gates
def translate(file: str, features: Features) -> None:
    """Write the configuration that is equivalent to a legacy Policy (JSON or YAML).

    Comments at the top list the parts that kube-scheduler no longer supports. `-` is standard input.
    """
    try:
        translated = policy.load(configuration_file.read(file), features)
    except ConfigError as error:
        click.echo(_lines(file, error), err=True)
        sys.exit(1)
    for note in policy.notes(translated):
        click.echo(f"# {note}")
    click.echo(config.dump_briefly(translated, config.default(features), features), nl=False)
