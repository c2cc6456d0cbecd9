"""Validation of a completed configuration. All problems are reported, not only the first."""

from collections.abc import Iterator

from kubestow.api.name_formats import key_problems
from kubestow.config.configuration import Extender, LeaderElection, Profile, SchedulerConfiguration
from kubestow.config.expansion import ResolvedPlugins, enabled_names, expand
from kubestow.config.features import Features
from kubestow.config.plugin_args import PluginArgs
from kubestow.config.plugin_points import PluginPoints
from kubestow.config.problems import Problem

_RETRY_JITTER = 1.2
"""Maximum factor by which the time between retries is extended. kube-scheduler applies this rule at startup only."""
_REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
# Arguments that are read only when the plugin is constructed, so that those of a disabled plugin are not validated.
_VALIDATED_WHEN_ENABLED = frozenset({"NodeResourcesFit"})


def validate(configuration: SchedulerConfiguration, features: Features, known: PluginPoints) -> list[Problem]:
    """Return the problems of a completed configuration; `known` are the existing plugins."""
    problems = [
        *_process_problems(configuration),
        *_leader_election_problems(configuration.leaderElection),
        *_extender_problems(configuration.extenders),
    ]
    resolved = []
    for index, profile in enumerate(configuration.profiles):
        path = f"profiles[{index}]"
        problems += _profile_problems(profile, path, features)
        expansion = expand(profile.plugins, known, f"{path}.plugins")
        problems += expansion.problems
        resolved.append(expansion.points)
    problems += _differences(configuration.profiles, resolved)
    return list(dict.fromkeys(problems))


def _process_problems(configuration: SchedulerConfiguration) -> Iterator[Problem]:
    if configuration.parallelism <= 0:
        yield Problem("parallelism", f"must be greater than 0, not {configuration.parallelism}")
    yield from _percentage_problems(configuration.percentageOfNodesToScore, "percentageOfNodesToScore")
    initial, longest = configuration.podInitialBackoffSeconds, configuration.podMaxBackoffSeconds
    if initial <= 0:
        yield Problem("podInitialBackoffSeconds", f"must be greater than 0, not {initial}")
    if longest < initial:
        yield Problem("podMaxBackoffSeconds", f"must be at least podInitialBackoffSeconds ({initial}), not {longest}")
    if configuration.clientConnection.burst < 0:
        yield Problem("clientConnection.burst", f"must be at least 0, not {configuration.clientConnection.burst}")


def _percentage_problems(percentage: int | None, path: str) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield Problem(path, f"must be from 0 to 100, not {percentage}")


def renewal_problems(election: LeaderElection) -> Iterator[Problem]:
    """Yield the problem of a lease that cannot be renewed, with which kube-scheduler fails after loading."""
    if election.leaderElect and election.renewDeadline <= _RETRY_JITTER * election.retryPeriod:
        message = f"must be longer than {_RETRY_JITTER} times retryPeriod ({election.retryPeriod})"
        yield Problem("leaderElection.renewDeadline", f"{message}, not {election.renewDeadline}")


def _leader_election_problems(election: LeaderElection) -> Iterator[Problem]:
    if not election.leaderElect:
        return
    for name in ("leaseDuration", "renewDeadline", "retryPeriod"):
        duration = getattr(election, name)
        if duration <= 0:
            yield Problem(f"leaderElection.{name}", f"must be greater than 0, not {duration}")
    if election.leaseDuration <= election.renewDeadline:
        message = f"must be longer than renewDeadline ({election.renewDeadline}), not {election.leaseDuration}"
        yield Problem("leaderElection.leaseDuration", message)
    for name in ("resourceName", "resourceNamespace"):
        if not getattr(election, name):
            yield Problem(f"leaderElection.{name}", "must not be empty")
    if election.resourceLock != "leases":
        yield Problem("leaderElection.resourceLock", f'must be leases, not "{election.resourceLock}"')


def _extender_problems(extenders: tuple[Extender, ...]) -> Iterator[Problem]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritizeVerb and extender.weight <= 0:
            yield Problem(f"{path}.weight", f"must be greater than 0 with a prioritizeVerb, not {extender.weight}")
        if extender.httpTimeout < 0:
            yield Problem(f"{path}.httpTimeout", f"must be at least 0, not {extender.httpTimeout}")
        tls = extender.tlsConfig
        if tls is not None and tls.insecure and (tls.caFile or tls.caData):
            yield Problem(f"{path}.tlsConfig.insecure", "must be false if there is a CA")
        for position, resource in enumerate(extender.managedResources):
            resource_path = f"{path}.managedResources[{position}].name"
            yield from _extended_resource_problems(resource.name, resource_path)
            if resource.name in managed:
                yield Problem(resource_path, f'"{resource.name}" is managed by an extender already')
            managed.add(resource.name)
    binders = [f"extenders[{index}]" for index, extender in enumerate(extenders) if extender.bindVerb]
    if len(binders) > 1:
        yield Problem("extenders", f"only one extender may have a bindVerb, but {', '.join(binders)} have one")


def _extended_resource_problems(name: str, path: str) -> Iterator[Problem]:
    """Yield the problems of the name of an extended resource, which must be valid with the prefix of quotas, too."""
    wrong = key_problems(name)
    own = "/" not in name or "kubernetes.io/" in name or name.startswith("requests.")
    if not wrong and (own or key_problems(f"requests.{name}")):
        wrong = ["not the name of an extended resource, such as example.com/gpu"]
    yield from (Problem(path, f'"{name}": {problem}') for problem in wrong)


def _profile_problems(profile: Profile, path: str, features: Features) -> Iterator[Problem]:
    if not profile.schedulerName:
        yield Problem(f"{path}.schedulerName", "is required")
    yield from _percentage_problems(profile.percentageOfNodesToScore, f"{path}.percentageOfNodesToScore")
    enabled = enabled_names(profile.plugins)
    seen: set[str] = set()
    for index, entry in enumerate(profile.pluginConfig):
        entry_path = f"{path}.pluginConfig[{index}]"
        if entry.name in seen:
            yield Problem(entry_path, f'plugin "{entry.name}" is configured more than once')
        seen.add(entry.name)
        if entry.name in _REMOVED_PLUGINS:
            yield Problem(entry_path, f'plugin "{entry.name}" no longer exists')
        elif entry.name == "NodeResourcesFitArgs":
            yield Problem(f"{entry_path}.args", "the plugin is called NodeResourcesFit, this is the kind of its args")
        elif isinstance(entry.args, PluginArgs) and (
            entry.name in enabled or entry.name not in _VALIDATED_WHEN_ENABLED
        ):
            yield from entry.args.problems(f"{entry_path}.args", features)


def _differences(profiles: tuple[Profile, ...], resolved: list[ResolvedPlugins]) -> Iterator[Problem]:
    """Yield the problems between profiles: names must differ; queue sorting must not, since they share the queue."""
    names: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        first = names.setdefault(profile.schedulerName, index)
        if profile.schedulerName and first != index:
            yield Problem(f"{path}.schedulerName", f'"{profile.schedulerName}" is the name of profiles[{first}], too')
        if index > 0 and not _same_queue_sort(profiles[0], profile, resolved[0], resolved[index]):
            yield Problem(f"{path}.plugins.queueSort", "must be the same as in profiles[0]")
        for plugin in resolved[0]["queueSort"]:
            if profiles[0].args_of(plugin.name) != profile.args_of(plugin.name):
                message = f"the args of queue sort plugin {plugin.name} must be the same as in profiles[0]"
                yield Problem(f"{path}.pluginConfig.args", message)


def _same_queue_sort(first: Profile, other: Profile, first_at: ResolvedPlugins, other_at: ResolvedPlugins) -> bool:
    same_lists: bool = first.plugins.queueSort == other.plugins.queueSort
    return same_lists and first_at["queueSort"] == other_at["queueSort"]
