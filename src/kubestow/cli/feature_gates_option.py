"""--feature-gates, for the commands that take them without kube-scheduler's other flags."""

from collections.abc import Callable
from typing import Any

import click

from kubestow.config.features import FeatureGateError, Features


def _features(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> Features:
    try:
        return Features.parse(",".join(value))
    except FeatureGateError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def feature_gates_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option; the command gets `features`."""
    return click.option(
        "--feature-gates", "features", metavar="A=true,B=false", multiple=True, callback=_features, help=help_text
    )
