"""A pod's signature: what of it the answers depend on that plugins give about a row, as far as they say so.

The scheduler's own plugins sign what the pods of one controller have in common. So where nobody else signs, plugins are
not asked again about a pod that is like the last one of its controller; if it differs from that in nothing but what it
requests, those are asked that look at what pods add up to.
"""

from collections.abc import Hashable

import msgspec
from msgspec.structs import replace

from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.framework.profile import Profile
from kubestow.model.pod import PodSpec
from kubestow.model.requests import differ_in_requests, holds_by_status


class Signature(msgspec.Struct, frozen=True):
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
_MOST_CONTROLLERS = 1_024


class Signatures:
    """The signatures of pods."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[PodInfo, int, Signature]] = {}
        """By controller, of its last pod; by namespace of those without one. With the version of the cluster."""

    def of(self, profile: Profile, cluster: Cluster, pod: PodInfo) -> Signature:
        """That of a pod whose turn it is."""
        if not profile.signs_likeness:
            return sign(profile, pod)
        version, owners = cluster.signing_version, pod.pod.metadata.ownerReferences
        controller = owners[0].uid if owners else pod.namespace
        found = self._last.get(controller)
        like = None
        if found is None:
            if len(self._last) >= _MOST_CONTROLLERS:
                self._last.clear()
        elif found[1] == version and pod.is_kin_of(found[0]):
            other, _, signature = found
            if _sign_alike(pod.pod.spec, other.pod.spec):
                pod.learn_from(other)
                return signature
            # Requests may name what devices stand for; apart from that, they are about sums.
            if not (signature.declined or cluster.devices.classes) and differ_in_requests(pod.pod.spec, other.pod.spec):
                like = signature
        signature = sign(profile, pod, like)
        if not holds_by_status(pod.pod):
            self._last[controller] = (pod, version, signature)
        return signature


def _sign_alike(one: PodSpec, other: PodSpec) -> bool:
    """Whether plugins sign the same of two pods of one controller. Which devices are claimed is nothing to sign by."""
    if one == other:
        return True
    claims = other.resourceClaims
    return bool(claims and one.resourceClaims) and replace(one, resourceClaims=claims) == other


def sign(profile: Profile, pod: PodInfo, like: Signature | None = None) -> Signature:
    """Ask all plugins of a profile that sign; those that look at sums only, if it is `like` another for the rest."""
    ask = profile.caller.sign
    sums = ask(profile.sum_signing, pod)
    if like is not None and None not in sums:
        return Signature(like.nodes, like.pods, (like.nodes, like.pods, sums, pod.priority), _NOBODY)
    nodes, pods = ask(profile.node_signing, pod), ask(profile.pod_signing, pod)
    declined = _NOBODY
    if None in nodes or None in pods or None in sums:
        signing = profile.node_signing + profile.pod_signing + profile.sum_signing
        declined = frozenset(of.name for of, part in zip(signing, nodes + pods + sums, strict=True) if part is None)
    of_nodes, of_pods = (profile.name, nodes), (profile.name, pods)
    return Signature(of_nodes, of_pods, (of_nodes, of_pods, sums, pod.priority), declined)
