"""--plugin, for every command that reads a configuration."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubestow.plugin.loading import PluginCollection


def _collected(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> "PluginCollection":
    # Imported only now: help must not pay for the framework.
    from kubestow.plugin.loading import PluginCollection, PluginLoadError

    try:
        return PluginCollection(value)
    except PluginLoadError as error:
        raise click.BadParameter(str(error), context, parameter) from None


plugin_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--plugin",
    "plugins",
    metavar="FILE|MODULE",
    multiple=True,
    callback=_collected,
    help="Plugins of your own: a Python file or a module; repeatable. The configuration enables them by name.",
)
