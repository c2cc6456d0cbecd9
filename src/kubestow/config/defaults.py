"""Defaults of a configuration.

Constant defaults are declared with the fields, those of plugin arguments in `plugin_args`. This module has the others:
defaults that depend on whether a field is absent (filled into the tree, where absent and empty still differ), defaults
that replace an empty value, and the default plugins, with which the lists of a profile are merged.
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
    Plugin("NodeName"),
    Plugin("NodeUnschedulable"),
    Plugin("TaintToleration", 3),
    Plugin("NodeAffinity", 2),
    Plugin("NodePorts"),
    Plugin("DeferredPodScheduling"),
    Plugin("NodeResourcesFit", 1),
    Plugin("VolumeRestrictions"),
    Plugin("NodeVolumeLimits"),
    Plugin("VolumeBinding"),
    Plugin("VolumeZone"),
    Plugin("PodTopologySpread", 2),
    Plugin("InterPodAffinity", 2),
    # Before preemption: deallocating an unused claim is better than evicting a running pod.
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
    """Fill in, before decoding, the defaults that depend on a field being absent rather than empty."""
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
    """Return the configuration with all defaults filled in."""
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
    """Return the section with the default of each field that is empty or zero."""
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
    """Return the default plugins without the disabled ones, with overrides in place; then the others of the profile."""
    disabled = {plugin.name for plugin in custom.disabled}
    # If a plugin is listed twice, the last entry replaces the default; validation reports the other as a duplicate.
    last_place = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    kept = () if "*" in disabled else tuple(plugin for plugin in default if plugin.name not in disabled)
    replaced = {last_place[plugin.name] for plugin in kept if plugin.name in last_place}
    in_place = tuple(custom.enabled[last_place[p.name]] if p.name in last_place else p for p in kept)
    own = tuple(plugin for index, plugin in enumerate(custom.enabled) if index not in replaced)
    # The weight of a disabled plugin has no effect and is dropped.
    return PluginSet(in_place + own, tuple(Plugin(plugin.name) for plugin in custom.disabled))
