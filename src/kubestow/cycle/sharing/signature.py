"""A pod's signature: what of it the answers depend on that plugins give about a row, as far as they say so."""

from collections.abc import Hashable
from typing import NamedTuple

from kubestow.cluster.pods import PodInfo
from kubestow.framework.profile import Profile


class Signature(NamedTuple):
    """Equal parts mean equal answers."""

    nodes: Hashable
    """To the plugins that look at a node alone."""
    pods: Hashable
    """To those that look at the pods on it."""
    whole: Hashable
    """To all that sign; with the priority, since only more important pods leave room for less important ones."""
    declined: frozenset[str]
    """The plugins that cannot say this time."""


_NOBODY: frozenset[str] = frozenset()


def sign(profile: Profile, pod: PodInfo) -> Signature:
    """Ask all plugins of a profile that sign."""
    ask = profile.caller.sign
    nodes, pods, sums = ask(profile.node_signing, pod), ask(profile.pod_signing, pod), ask(profile.sum_signing, pod)
    declined = _NOBODY
    if None in nodes or None in pods or None in sums:
        signing = profile.node_signing + profile.pod_signing + profile.sum_signing
        declined = frozenset(of.name for of, part in zip(signing, nodes + pods + sums, strict=True) if part is None)
    of_nodes, of_pods = (profile.name, nodes), (profile.name, pods)
    return Signature(of_nodes, of_pods, (of_nodes, pods, sums, pod.priority), declined)
