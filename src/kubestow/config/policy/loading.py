"""Loading of a Policy as a configuration: parse, decode, validate, translate, then finish it like any configuration."""

from msgspec.structs import replace

from kubestow.config import configuration, document, loading
from kubestow.config.configuration import SchedulerConfiguration
from kubestow.config.decoding import Decoder
from kubestow.config.features import Features
from kubestow.config.policy.policy import API_VERSION, KIND, Policy
from kubestow.config.policy.translation import extender_of, profile_of
from kubestow.config.policy.validation import validate
from kubestow.config.problems import ConfigError, Problem, joined


def load(
    text: str, features: Features | None = None, base: SchedulerConfiguration | None = None
) -> SchedulerConfiguration:
    """Load a Policy, JSON or YAML. Raises ConfigError with all problems.

    Its profile and extenders replace those of `base`, the default configuration if None.
    """
    features = features or Features()
    problems: list[Problem] = []
    tree = document.parse(text, problems)
    if isinstance(tree, dict) and tree.get("kind") == configuration.KIND:
        message = f"this is already a {configuration.KIND}, not a {KIND}: use it unchanged, with --config"
        raise ConfigError([Problem("kind", message)])
    policy = Decoder(problems).whole(Policy, tree, KIND, API_VERSION)
    if problems := joined(problems, validate(policy)):
        raise ConfigError(problems)
    translated = replace(
        base or loading.default(features),
        profiles=(profile_of(policy),),
        extenders=tuple(map(extender_of, policy.extenders)),
    )
    return loading.finish(translated, features)
