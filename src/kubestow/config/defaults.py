"""What a configuration means where it says nothing.

Constant defaults stand with the fields, and those of plugin arguments in `plugin_args`. Here are the rest: those that
depend on whether another field was given (filled into the tree, where absent and empty still differ), those that
replace an empty value, and the default plugins, into which a profile's own lists are merged.
"""

from typing import Any, TypeVar

from msgspec.structs import replace

from kubestow.config.configuration import (
    ClientConnection,
    Extender,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    Section,
)
from kubestow.config.features import Features
from kubestow.config.plugin_args import ARGS_OF_PLUGIN, PluginArgs
from kubestow.config.plugin_points import GATE_OF_PLUGIN

S = TypeVar("S", bound=Section)

DEFAULT_SCHEDULER_NAME = "default-scheduler"

_DEFAULT_PLUGINS = (
    Plugin("SchedulingGates"),
    Plugin("PrioritySort"),
    Plugin("NodeUnschedulable"),
    Plugin("NodeName"),
    Plugin("TaintToleration", 3),
    Plugin("NodeAffinity", 2),
    Plugin("NodePorts"),
    Plugin("NodeResourcesFit", 1),
    Plugin("VolumeRestrictions"),
    Plugin("NodeVolumeLimits"),
    Plugin("VolumeBinding"),
    Plugin("VolumeZone"),
    Plugin("PodTopologySpread", 2),
    Plugin("InterPodAffinity", 2),
    # Before preemption: freeing an idle claim is better than evicting a pod that works.
    Plugin("DynamicResources", 2),
    Plugin("DefaultPreemption"),
    Plugin("NodeResourcesBalancedAllocation", 1),
    Plugin("ImageLocality", 1),
    Plugin("DefaultBinder"),
    Plugin("NodeDeclaredFeatures"),
    Plugin("GangScheduling"),
    Plugin("TopologyPlacementGenerator"),
    Plugin("PodGroupPodsCount", 1),
)


def fill_absent(tree: Any) -> None:
    """Fill in, before decoding, what depends on a field being absent rather than empty."""
    if not isinstance(tree, dict):
        return
    if tree.get("enableContentionProfiling") is None:
        tree["enableContentionProfiling"] = tree.get("enableProfiling") in (None, True)
    if tree.get("profiles") in (None, []):
        tree["profiles"] = [{}]
    match tree["profiles"]:
        case [dict() as only] if only.get("schedulerName") is None:
            only["schedulerName"] = DEFAULT_SCHEDULER_NAME
        case [None]:
            tree["profiles"] = [{"schedulerName": DEFAULT_SCHEDULER_NAME}]


def complete(configuration: SchedulerConfiguration, features: Features) -> SchedulerConfiguration:
    """The configuration with every default in place."""
    return replace(
        configuration,
        leaderElection=_without_empty(configuration.leaderElection, LeaderElection(), keep="leaderElect"),
        clientConnection=_without_empty(configuration.clientConnection, ClientConnection()),
        profiles=tuple(_complete_profile(profile, features) for profile in configuration.profiles),
        extenders=tuple(
            replace(extender, httpTimeout=extender.httpTimeout or Extender().httpTimeout)
            for extender in configuration.extenders
        ),
    )


def _without_empty(section: S, default: S, keep: str = "") -> S:
    """The section with its default for every field that is empty or zero."""
    fields = section.__struct_fields__
    return replace(
        section, **{name: getattr(section, name) or getattr(default, name) for name in fields if name != keep}
    )


def _complete_profile(profile: Profile, features: Features) -> Profile:
    plugins = _merged(profile.plugins, features)
    given = tuple(
        replace(entry, args=entry.args.completed(features)) if isinstance(entry.args, PluginArgs) else entry
        for entry in profile.pluginConfig
    )
    configured = {entry.name for entry in given}
    enabled = {plugin.name for point in Plugins.__struct_fields__ for plugin in plugins.at(point).enabled}
    added = tuple(
        PluginConfig(name, ARGS_OF_PLUGIN[name]().completed(features))
        for name in sorted(enabled - configured)
        if name in ARGS_OF_PLUGIN
    )
    return replace(profile, plugins=plugins, pluginConfig=given + added)


def _merged(custom: Plugins, features: Features) -> Plugins:
    default = tuple(
        plugin
        for plugin in _DEFAULT_PLUGINS
        if plugin.name not in GATE_OF_PLUGIN or features.enabled(GATE_OF_PLUGIN[plugin.name])
    )
    sets = {point: _merged_set((), custom.at(point)) for point in Plugins.__struct_fields__}
    return Plugins(**sets | {"multiPoint": _merged_set(default, custom.multiPoint)})


def _merged_set(default: tuple[Plugin, ...], custom: PluginSet) -> PluginSet:
    """Default plugins, less the disabled ones, reconfigured in place; then the profile's own, in its order."""
    disabled = {plugin.name for plugin in custom.disabled}
    # Where a plugin is listed twice the last one replaces the default, and the other is found as enabled twice.
    last_place = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    kept = () if "*" in disabled else tuple(plugin for plugin in default if plugin.name not in disabled)
    replaced = {last_place[plugin.name] for plugin in kept if plugin.name in last_place}
    in_place = tuple(custom.enabled[last_place[p.name]] if p.name in last_place else p for p in kept)
    own = tuple(plugin for index, plugin in enumerate(custom.enabled) if index not in replaced)
    # A weight on a disabled plugin means nothing and is not kept.
    return PluginSet(in_place + own, tuple(Plugin(plugin.name) for plugin in custom.disabled))
