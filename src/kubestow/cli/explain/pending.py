"""The pending pods that a command line of `kubestow explain` selects by owner, namespace and labels."""

from collections.abc import Iterable

from kubestow.api.labels import Selector, SelectorError, parse_selector
from kubestow.api.pod import Pod
from kubestow.cli.explain.request import Request
from kubestow.insight.explain.overview import PendingOverview, pending_overview
from kubestow.insight.explain.owners import Owner
from kubestow.insight.explain.world import ExplainError, World


def overview_of(request: Request, world: World, namespace: str, notes: tuple[str, ...]) -> PendingOverview:
    """Return the overview of the selected pods; an empty namespace stands for all. Raises ExplainError."""
    selector = _selector(request.selector)
    kind, name = request.owner
    pods = [
        pod
        for pod in world.pending.values()
        if namespace in ("", pod.metadata.namespace) and selector.matches(pod.metadata.labels) and not _is_leaving(pod)
    ]
    if kind:
        of = [pod for pod in pods if _is_of(pod, kind, name, world)]
        if not of:
            raise ExplainError(_nothing(kind, name, namespace, pods, world))
        pods = of
    return pending_overview(world, pods, request.what_if_node, notes)


def _selector(text: str) -> Selector:
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise ExplainError(f"--selector: {error}") from None


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletionTimestamp is not None


def _is_of(pod: Pod, kind: str, name: str, world: World) -> bool:
    """Return whether an owner, or the ReplicaSet of a Deployment, is the one that is named."""
    owner = Owner.of(pod, world.cluster.listers)
    direct = any(one.controller and (one.kind, one.name) == (kind, name) for one in pod.metadata.ownerReferences)
    return direct or (owner.kind, owner.name) == (kind, name)


def _nothing(kind: str, name: str, namespace: str, pods: Iterable[Pod], world: World) -> str:
    where = f" in namespace {namespace}" if namespace else ""
    owners = sorted({owner.name for pod in pods if (owner := Owner.of(pod, world.cluster.listers)).kind == kind})
    known = f"; pending are pods of {', '.join(owners)}" if owners else ""
    return f"no pod of {kind.lower()} {name}{where} is pending{known}"
