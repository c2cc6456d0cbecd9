"""A pod's signature: what of it the answers depend on that plugins give about a row, as far as they say so."""

from collections.abc import Hashable
from typing import NamedTuple

from kubestow.cluster.pods import PodInfo
from kubestow.framework.profile import Profile
from kubestow.framework.results import PluginError


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
    nodes: list[Hashable] = [profile.name]
    pods: list[Hashable] = [profile.name]
    sums: list[Hashable] = [pod.priority]
    declined: list[str] = []
    name = ""
    try:
        for parts, signing in ((nodes, profile.node_signing), (pods, profile.pod_signing), (sums, profile.sum_signing)):
            for name, plugin in signing:
                part = plugin.sign(pod)
                parts.append(part)
                if part is None:
                    declined.append(name)
    except Exception as error:
        raise PluginError(name, "sign", error) from error
    of_nodes, of_pods = tuple(nodes), tuple(pods)
    return Signature(of_nodes, of_pods, (of_nodes, of_pods, *sums), frozenset(declined) if declined else _NOBODY)
