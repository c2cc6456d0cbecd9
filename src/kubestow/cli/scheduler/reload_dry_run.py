"""Dry runs of new profiles on pods of the cluster; nothing is reserved or written."""

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest

from kubestow.api.pod import Pod
from kubestow.api.priority import pod_is_terminal
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import PluginError

MOST_PODS = 20


class DryRunError(Exception):
    """A plugin fails where the current profile does not; names plugin, extension point and pod."""


def try_profiles(
    new: Mapping[str, Profile], old: Mapping[str, Profile], cluster: Cluster, nominator: Nominator, pods: Iterable[Pod]
) -> None:
    """Try new profiles on some pending and some running pods. Raises DryRunError."""
    for pod in _some(new, pods):
        name = pod.spec.schedulerName
        error = _failure(new[name], cluster, nominator, pod)
        if error is not None and (name not in old or _failure(old[name], cluster, nominator, pod) is None):
            raise DryRunError(f"profile {name}: tried on pod {pod.key}: {error.located}")


def _some(names: Mapping[str, Profile], pods: Iterable[Pod]) -> list[Pod]:
    """Return an equal share of pods per profile, half pending and half running where possible."""
    share = max(MOST_PODS // max(len(names), 1), 1)
    found: dict[tuple[str, bool], list[Pod]] = {}
    for pod in pods:
        if pod.spec.schedulerName in names and not pod_is_terminal(pod):
            kind = found.setdefault((pod.spec.schedulerName, not pod.spec.nodeName), [])
            if len(kind) < share:
                kind.append(pod)
    chosen: list[Pod] = []
    for name in names:
        in_turn = chain.from_iterable(zip_longest(found.get((name, True), ()), found.get((name, False), ())))
        chosen += [pod for pod in in_turn if pod is not None][:share]
    return chosen


def _failure(profile: Profile, cluster: Cluster, nominator: Nominator, pod: Pod) -> PluginError | None:
    """Return the error of a plugin, from PreEnqueue to Score."""
    try:
        info = PodInfo(pod)
        for hook in profile.pre_enqueue:
            profile.caller.call(hook, pod)
        profile.caller.sign(profile.node_signing + profile.pod_signing + profile.sum_signing, info)
        evaluation = Evaluation(profile, cluster, nominator, info)
        if cluster.nodes.count and evaluation.pre_filter():
            passing = evaluation.filter()
            evaluation.message()
            if len(passing):
                evaluation.score(passing)
    except PluginError as error:
        return error
    except ValueError:
        # The pod is invalid, which cycles report.
        return None
    return None
