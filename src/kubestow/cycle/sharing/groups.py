"""The plugins that judge rows, grouped by what they look at, so that what is said of a row is remembered apart.

Plugins that look at a node alone are asked again when the node has changed, those that look at the pods on it when
these have. Plugins that look only at what those pods add up to are a group of their own, because pods often differ in
nothing but what they request. The others say nothing of what their answers depend on, and are asked every time.
"""

from collections.abc import Iterable

import msgspec

from kubestow.framework.hook import Hook
from kubestow.framework.profile import Profile


class Group(msgspec.Struct, frozen=True):
    """Some plugins of a profile, at each point."""

    pre_filter: tuple[Hook, ...]
    filter: tuple[Hook, ...]
    pre_score: tuple[Hook, ...]
    score: tuple[tuple[Hook, int], ...]
    """With their weights."""


class Groups(msgspec.Struct, frozen=True):
    """All plugins of a profile that judge rows."""

    nodes: Group
    pods: Group
    sums: Group
    others: Group


def groups_of(profile: Profile, declined: frozenset[str]) -> Groups:
    """Some plugins may have declined to sign: they are among the others then."""
    nodes, pods, sums = (
        {hook.name for hook in signing} - declined
        for signing in (profile.node_signing, profile.pod_signing, profile.sum_signing)
    )
    others = profile.plugins.keys() - nodes - pods - sums
    return Groups(_group(profile, nodes), _group(profile, pods), _group(profile, sums), _group(profile, others))


def _group(profile: Profile, names: Iterable[str]) -> Group:
    return Group(
        tuple(hook for hook in profile.pre_filter if hook.name in names),
        tuple(hook for hook in profile.filter if hook.name in names),
        tuple(hook for hook in profile.pre_score if hook.name in names),
        tuple(of for of in zip(profile.score, profile.weights, strict=True) if of[0].name in names),
    )
