"""The plugins that filter and score rows, grouped by what they read of a node, so that results are cached separately.

Plugins that read only the node are called again when the node has changed, those that read the pods on it when these
have changed. Plugins that read only the sums of these pods' requests are a group of their own, because pods often
differ only in what they request. The other plugins do not declare what their answers depend on, and are always called.
"""

from collections.abc import Iterable

import msgspec

from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.profile import Profile


class PluginGroup(msgspec.Struct, frozen=True):
    """Some plugins of a profile, by extension point."""

    pre_filter: tuple[Hook, ...]
    filter: tuple[Hook, ...]
    pre_score: tuple[Hook, ...]
    score: tuple[tuple[Hook, int], ...]
    """Score plugins with their weights."""


class PluginGroups(msgspec.Struct, frozen=True):
    """All plugins of a profile that filter or score rows, by what they read."""

    nodes: PluginGroup
    pods: PluginGroup
    sums: PluginGroup
    others: PluginGroup


def plugin_groups_of(profile: Profile, declined: frozenset[str]) -> PluginGroups:
    """Group the plugins of a profile; the `declined` ones, which did not sign a pod, are among the others."""
    nodes, pods, sums = (
        {hook.name for hook in signing} - declined
        for signing in (profile.node_signing, profile.pod_signing, profile.sum_signing)
    )
    others = profile.plugins.keys() - nodes - pods - sums
    return PluginGroups(_group(profile, nodes), _group(profile, pods), _group(profile, sums), _group(profile, others))


def _group(profile: Profile, names: Iterable[str]) -> PluginGroup:
    return PluginGroup(
        tuple(hook for hook in profile.pre_filter if hook.name in names),
        tuple(hook for hook in profile.filter if hook.name in names),
        tuple(hook for hook in profile.pre_score if hook.name in names),
        tuple(pair for pair in zip(profile.score, profile.weights, strict=True) if pair[0].name in names),
    )
