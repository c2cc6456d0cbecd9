"""Reading a scheduler configuration from where the command line says."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubestow import config
from kubestow.api.files.sources import describe_error, text_of
from kubestow.config import ConfigError, Features, Problem, SchedulerConfiguration

if TYPE_CHECKING:
    from kubestow.plugin.loading import PluginCollection


def load(file: str, features: Features, plugins: "PluginCollection | None" = None) -> SchedulerConfiguration:
    """The configuration in a file, `-` for standard input; raises ConfigError. `plugins` are those it may name."""
    return parse(read(file), features, plugins)


def parse(text: str, features: Features, plugins: "PluginCollection | None" = None) -> SchedulerConfiguration:
    """The configuration in a text; raises ConfigError."""
    # Imported only now: commands that read no configuration must not pay for the framework.
    from kubestow.plugin.loading import PluginCollection, PluginLoadError

    plugins = PluginCollection() if plugins is None else plugins
    try:
        configuration = config.load(text, features, plugins)
    except PluginLoadError as error:
        raise ConfigError([Problem("", str(error))]) from None
    problems = [
        Problem(f"profiles[{number}].pluginConfig[{entry.name}]", problem)
        for number, profile in enumerate(configuration.profiles)
        for entry in profile.pluginConfig
        for problem in _args_problems(plugins.plugin(entry.name), entry.args)
    ]
    if problems:
        raise ConfigError(problems)
    return configuration


def _args_problems(plugin: type | None, args: Any) -> Iterator[str]:
    """What a plugin of one's own has against its arguments."""
    from kubestow.scheduler.framework.args import ArgsError, decode_args

    try:
        if plugin is not None:
            decode_args(plugin, args)
    except ArgsError as error:
        yield str(error)


def read(file: str) -> str:
    """The text of a file; raises ConfigError."""
    try:
        return text_of(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem("", describe_error(error))]) from None
