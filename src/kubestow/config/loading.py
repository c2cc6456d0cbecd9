"""Loading of a complete and valid configuration from text, in five steps: parse, decode, default, validate, prune.

Problems of decoding are reported alone, since an incomplete tree cannot be validated; validation reports all others.
As in kube-scheduler, resources that only extenders handle are ignored by NodeResourcesFit, and the last step drops the
arguments of plugins that are not enabled.
"""

from msgspec.structs import replace

from kubestow.config import decoding, defaults, document, validation
from kubestow.config.configuration import API_VERSION, KIND, PluginConfig, Profile, SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.config.features import Features
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.config.plugin_points import IN_TREE, PluginPoints
from kubestow.config.problems import ConfigError, Problem

_DEFAULTS_ONLY = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


def load(text: str, features: Features | None = None, known: PluginPoints = IN_TREE) -> SchedulerConfiguration:
    """Load a KubeSchedulerConfiguration, YAML or JSON. Raises ConfigError with all problems.

    `known` maps the existing plugins to the extension points that each implements.
    """
    problems: list[Problem] = []
    tree = document.parse(text)
    defaults.fill_absent(tree)
    configuration = decoding.decode(tree, problems)
    if problems:
        raise ConfigError(problems)
    return finish(configuration, features or Features(), known)


def finish(
    configuration: SchedulerConfiguration, features: Features, known: PluginPoints = IN_TREE
) -> SchedulerConfiguration:
    """Complete, validate and prune a decoded configuration. Raises ConfigError with all problems."""
    problems: list[Problem] = []
    configuration = _with_ignored_resources(defaults.complete(configuration, features), problems)
    problems += validation.validate(configuration, features, known)
    if problems:
        raise ConfigError(problems)
    return replace(configuration, profiles=tuple(_pruned(profile, known) for profile in configuration.profiles))


def default(features: Features | None = None) -> SchedulerConfiguration:
    """Return the configuration of a scheduler without a configuration file."""
    return load(_DEFAULTS_ONLY, features)


def _with_ignored_resources(configuration: SchedulerConfiguration, problems: list[Problem]) -> SchedulerConfiguration:
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managedResources
        if resource.ignoredByScheduler
    )
    if not ignored:
        return configuration
    profiles = []
    for index, profile in enumerate(configuration.profiles):
        if not isinstance(profile.args_of("NodeResourcesFit"), NodeResourcesFitArgs):
            message = "an extender has resources that the scheduler ignores, so NodeResourcesFit must be configured"
            problems.append(Problem(f"profiles[{index}].pluginConfig", message))
        profiles.append(
            replace(profile, pluginConfig=tuple(_ignoring(entry, ignored) for entry in profile.pluginConfig))
        )
    return replace(configuration, profiles=tuple(profiles))


def _ignoring(entry: PluginConfig, ignored: tuple[str, ...]) -> PluginConfig:
    if isinstance(entry.args, NodeResourcesFitArgs):
        return replace(entry, args=replace(entry.args, ignoredResources=ignored))
    return entry


def _pruned(profile: Profile, known: PluginPoints) -> Profile:
    needed = enabled_names(profile.plugins) & known.keys()
    entries = (entry for entry in profile.pluginConfig if entry.name in needed and entry.args is not None)
    return replace(profile, pluginConfig=tuple(sorted(entries, key=lambda entry: entry.name)))
