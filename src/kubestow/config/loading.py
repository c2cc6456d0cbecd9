"""Loading of a complete and valid configuration from text, in five steps: parse, decode, default, validate, prune.

All problems are reported together. Validation sees the default of a field that cannot be decoded, so that what it finds
there is left out.
As in kube-scheduler, resources that only extenders handle are ignored by NodeResourcesFit, and the last step drops the
arguments of plugins that are not enabled.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from kubestow.config import decoding, defaults, document, validation
from kubestow.config.configuration import API_VERSION, KIND, PluginConfig, Profile, SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.config.features import Features
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.config.plugin_points import IN_TREE, PluginPoints
from kubestow.config.problems import ConfigError, Problem, joined

_DEFAULTS_ONLY = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


Check = Callable[[SchedulerConfiguration], Iterable[Problem]]


def _no_problems(_configuration: SchedulerConfiguration) -> Iterable[Problem]:
    return ()


def load(
    text: str, features: Features | None = None, known: PluginPoints = IN_TREE, check: Check = _no_problems
) -> SchedulerConfiguration:
    """Load a KubeSchedulerConfiguration, YAML or JSON. Raises ConfigError with all problems.

    `known` maps the existing plugins to the extension points that each implements; `check` returns the problems that
    they have with a configuration.
    """
    problems: list[Problem] = []
    tree = document.parse(text, problems)
    defaults.fill_absent(tree)
    configuration = decoding.decode(tree, problems)
    return finish(configuration, features or Features(), known, check, problems)


def finish(
    configuration: SchedulerConfiguration,
    features: Features,
    known: PluginPoints = IN_TREE,
    check: Check = _no_problems,
    earlier: Sequence[Problem] = (),
) -> SchedulerConfiguration:
    """Complete, validate and prune a decoded configuration. Raises ConfigError with all problems.

    `earlier` are the problems of parsing and decoding.
    """
    problems: list[Problem] = []
    configuration = _with_ignored_resources(defaults.complete(configuration, features), problems)
    problems += validation.validate(configuration, features, known)
    finished = replace(configuration, profiles=tuple(_pruned(profile, known) for profile in configuration.profiles))
    problems += check(finished)
    if problems := joined(earlier, problems):
        raise ConfigError(problems)
    return finished


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
