"""Writing of a configuration as YAML, as by kube-scheduler's --write-config-to: keys sorted, empty fields omitted.

`_ALWAYS_WRITTEN` lists the fields that are written even if they are empty or zero.
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
    """Return the configuration as YAML."""
    return yaml_text({"apiVersion": API_VERSION, "kind": KIND, **tree_of(configuration)})


def dump_briefly(configuration: SchedulerConfiguration, default: SchedulerConfiguration, features: Features) -> str:
    """Return the configuration as YAML for users: fields in the usual order, without those that equal the default."""
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
    """Return a tree of dicts, lists and scalars as YAML that every YAML library reads as the same values."""
    return str(yaml.dump(tree, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=sort_keys))


def tree_of(value: Any) -> Any:
    """Convert a configuration or a part of it to dicts, lists and scalars, with the fields that are written."""
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
    """Writes text that every YAML library, and `document`, read as the same values."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (a repeated value is written twice)
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # Line breaks, including the rare ones of Unicode, are preserved only if escaped.
    safe = isinstance(plain_scalar(text), str) and text.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if safe else '"')


_Dumper.add_representer(str, _represent_text)
