"""A configuration as YAML, as kube-scheduler's --write-config-to writes it: sorted keys, empty fields left out.

Some fields are written even when they are empty or zero; they are listed here.
"""

import base64
from typing import Any

import msgspec
import yaml

from kubestow.api.files.scalars import plain_scalar
from kubestow.api.node import NodeSelector, NodeSelectorRequirement
from kubestow.api.pod import PreferredSchedulingTerm
from kubestow.config.configuration import (
    API_VERSION,
    KIND,
    ClientConnection,
    Extender,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    Profile,
    SchedulerConfiguration,
)
from kubestow.config.durations import Duration
from kubestow.config.features import Features
from kubestow.config.plugin_args import (
    ARGS_OF_PLUGIN,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    PluginArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

_ALWAYS_WRITTEN: dict[type, frozenset[str]] = {
    kind: frozenset(fields.split())
    for kind, fields in {
        ClientConnection: "kubeconfig acceptContentTypes contentType qps burst",
        DefaultPreemptionArgs: "minCandidateNodesPercentage minCandidateNodesAbsolute",
        DynamicResourcesArgs: "filterTimeout",
        Extender: "urlPrefix httpTimeout",
        InterPodAffinityArgs: "hardPodAffinityWeight ignorePreferredTermsOfExistingPods",
        LeaderElection: "leaderElect",
        NodeSelector: "nodeSelectorTerms",
        NodeSelectorRequirement: "key operator",
        Plugin: "name weight",
        PluginConfig: "name args",
        PreferredSchedulingTerm: "weight preference",
        RequestedToCapacityRatioArgs: "resources",
        ResourceSpec: "name",
        SchedulerConfiguration: "enableProfiling enableContentionProfiling percentageOfNodesToScore",
        UtilizationShapePoint: "utilization score",
        VolumeBindingArgs: "bindTimeoutSeconds",
    }.items()
}


def dump(configuration: SchedulerConfiguration) -> str:
    """The configuration as YAML text."""
    return yaml_text({"apiVersion": API_VERSION, "kind": KIND, **tree_of(configuration)})


def dump_briefly(configuration: SchedulerConfiguration, default: SchedulerConfiguration, features: Features) -> str:
    """The same for people to read: in the usual order, without what is the default anyway."""
    tree, common = tree_of(configuration), tree_of(default)
    tree = {name: value for name, value in tree.items() if name not in common or value != common[name]}
    if "profiles" in tree:
        tree["profiles"] = [_brief(profile, features) for profile in configuration.profiles]
    return yaml_text({"apiVersion": API_VERSION, "kind": KIND, **tree}, sort_keys=False)


def _brief(profile: Profile, features: Features) -> dict[str, Any]:
    tree = {name: value for name, value in tree_of(profile).items() if name not in ("plugins", "pluginConfig")}
    points: dict[str, Any] = {}
    for point in Plugins.__struct_fields__:
        kinds = {"enabled": profile.plugins.at(point).enabled, "disabled": profile.plugins.at(point).disabled}
        listed = {
            kind: [{"name": plugin.name} | ({"weight": plugin.weight} if plugin.weight else {}) for plugin in plugins]
            for kind, plugins in kinds.items()
            if plugins
        }
        points |= {point: listed} if listed else {}
    args = []
    for entry in profile.pluginConfig:
        kind = ARGS_OF_PLUGIN.get(entry.name)
        if kind is None or entry.args != kind().completed(features):
            given = {name: value for name, value in tree_of(entry.args).items() if name not in ("apiVersion", "kind")}
            args.append({"name": entry.name, "args": given})
    return tree | {"plugins": points} | ({"pluginConfig": args} if args else {})


def yaml_text(tree: Any, *, sort_keys: bool = True) -> str:
    """A tree of dicts, lists and scalars as YAML that everybody reads back as the same values."""
    return str(yaml.dump(tree, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=sort_keys))


def tree_of(value: Any) -> Any:
    """A configuration, or a part of it, as dicts, lists and scalars, as it is written."""
    if isinstance(value, msgspec.Struct):
        always = _ALWAYS_WRITTEN.get(type(value), frozenset())
        pairs = ((name, getattr(value, name)) for name in value.__struct_fields__)
        fields = {name: tree_of(field) for name, field in pairs if field or name in always}
        kind = {"apiVersion": API_VERSION, "kind": type(value).__name__} if isinstance(value, PluginArgs) else {}
        return kind | fields
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, tuple):
        return [tree_of(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class _Dumper(yaml.SafeDumper):
    """Writes what `document` reads back as the same value, whatever YAML library reads it."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (the same value twice is written twice)
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # Line breaks, also the rare ones of Unicode, survive only as escapes.
    safe = isinstance(plain_scalar(text), str) and text.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if safe else '"')


_Dumper.add_representer(str, _represent_text)
