"""Reads the scheduler configuration that the command line names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubestow import config
from kubestow.api.files.sources import describe_error, text_of
from kubestow.config import ConfigError, Features, Problem, SchedulerConfiguration

if TYPE_CHECKING:
    from kubestow.plugin.loading import PluginCollection


def load(file: str, features: Features, plugins: "PluginCollection | None" = None) -> SchedulerConfiguration:
    """Return the configuration in a file, `-` for standard input. `plugins`: those it can name. Raises ConfigError."""
    return parse(read(file), features, plugins)


def parse(text: str, features: Features, plugins: "PluginCollection | None" = None) -> SchedulerConfiguration:
    """Return the configuration in a text. Raises ConfigError."""
    # Imported only now: a slow import that other commands do not need.
    from kubestow.plugin.loading import PluginCollection, PluginLoadError

    plugins = PluginCollection() if plugins is None else plugins

    def check(configuration: SchedulerConfiguration) -> Iterator[Problem]:
        for number, profile in enumerate(configuration.profiles):
            for entry in profile.pluginConfig:
                for problem in _args_problems(plugins.plugin(entry.name), entry.args):
                    yield Problem(f"profiles[{number}].pluginConfig[{entry.name}]", problem)

    try:
        return config.load(text, features, plugins, check)
    except PluginLoadError as error:
        raise ConfigError([Problem("", str(error))]) from None


def _args_problems(plugin: type | None, args: Any) -> Iterator[str]:
    """Yield the problem of a custom plugin's arguments, if any."""
    from kubestow.scheduler.framework.args import ArgsError, decode_args

    try:
        if plugin is not None:
            decode_args(plugin, args)
    except ArgsError as error:
        yield str(error)


def read(file: str) -> str:
    """Return the text of a file. Raises ConfigError."""
    try:
        return text_of(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem("", describe_error(error))]) from None
