"""The signature of a pod: the properties of the pod that the plugins' answers about a row depend on.

The built-in plugins sign properties that are the same for all pods of a controller. If no other plugin signs, a pod
that equals the last one of its controller gets the same signature without calling plugins. If it differs only in its
requests, only the plugins that read sums of requests are called.
"""

from collections.abc import Hashable

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import PodSpec
from kubestow.api.requests import differ_in_requests, has_status_resources
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.profile import Profile


class Signature(msgspec.Struct, frozen=True):
    """The signature of a pod, by groups of plugins; equal parts mean equal answers."""

    nodes: Hashable
    """For the plugins that read only the node."""
    pods: Hashable
    """For the plugins that read the pods on it."""
    whole: Hashable
    """For all plugins that sign; with the priority, which decides about the nominated pods that are considered."""
    declined: frozenset[str]
    """The plugins whose `sign` returned None."""


_NO_PLUGINS: frozenset[str] = frozenset()
_CONTROLLERS_LIMIT = 1_024


class Signatures:
    """Returns the signatures of pods, and stores the last one of each controller."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[PodInfo, int, Signature]] = {}
        """By controller or, without one, namespace: the last pod, `signing_version` of the cluster, the signature."""

    def of(self, profile: Profile, cluster: Cluster, pod: PodInfo) -> Signature:
        """Return the signature of a pod."""
        if not profile.signs_equal_pods_equally:
            return sign(profile, pod)
        version, owners = cluster.signing_version, pod.pod.metadata.ownerReferences
        controller = owners[0].uid if owners else pod.namespace
        found = self._last.get(controller)
        similar = None
        if found is None:
            if len(self._last) >= _CONTROLLERS_LIMIT:
                self._last.clear()
        elif found[1] == version and pod.is_sibling_of(found[0]):
            other, _, signature = found
            if _have_equal_signatures(pod.pod.spec, other.pod.spec):
                pod.copy_computed(other)
                return signature
            # Requests only affect plugins that read sums, unless a resource stands for devices.
            if not (signature.declined or cluster.devices.classes) and differ_in_requests(pod.pod.spec, other.pod.spec):
                similar = signature
        signature = sign(profile, pod, similar)
        # Its values are computed here, so that later pods can copy them.
        if not has_status_resources(pod.pod) and pod.is_valid:
            self._last[controller] = (pod, version, signature)
        return signature


def are_equal(profile: Profile, pod: PodInfo, other: PodInfo) -> bool:
    """Return whether two pods of a profile have the same signature; False if that takes calls of plugins."""
    return (
        profile.signs_equal_pods_equally
        and not has_status_resources(other.pod)
        and pod.is_sibling_of(other)
        and _have_equal_signatures(pod.pod.spec, other.pod.spec)
    )


def _have_equal_signatures(one: PodSpec, other: PodSpec) -> bool:
    """Return whether two pods of one controller have the same signature, which does not depend on the claims' names."""
    if one == other:
        return True
    claims = other.resourceClaims
    return bool(claims and one.resourceClaims) and replace(one, resourceClaims=claims) == other


def sign(profile: Profile, pod: PodInfo, similar: Signature | None = None) -> Signature:
    """Call the plugins of a profile that sign; only those that read sums if `similar` has the other parts."""
    call = profile.caller.sign
    sums = call(profile.sum_signing, pod)
    if similar is not None and None not in sums:
        return Signature(similar.nodes, similar.pods, (similar.nodes, similar.pods, sums, pod.priority), _NO_PLUGINS)
    nodes, pods = call(profile.node_signing, pod), call(profile.pod_signing, pod)
    declined = _NO_PLUGINS
    if None in nodes or None in pods or None in sums:
        signing = profile.node_signing + profile.pod_signing + profile.sum_signing
        declined = frozenset(hook.name for hook, part in zip(signing, nodes + pods + sums, strict=True) if part is None)
    nodes_part, pods_part = (profile.name, nodes), (profile.name, pods)
    return Signature(nodes_part, pods_part, (nodes_part, pods_part, sums, pod.priority), declined)
