"""The pending pods that a command line of `kubestow explain` selects by owner, namespace and labels."""

from collections.abc import Iterable

from kubestow.api.labels import Selector, SelectorError, parse_selector
from kubestow.api.pod import Pod
from kubestow.cli.explain.request import Request
from kubestow.insight.explain.names import absent
from kubestow.insight.explain.overview import PendingOverview, pending_overview
from kubestow.insight.explain.owners import Owner
from kubestow.insight.explain.world import ExplainError, World


class NoPendingError(ExplainError):
    """No pod of an owner is pending: the owner does not exist, or all its pods have a node."""

    def __init__(self, world: World, kind: str, name: str, namespace: str) -> None:
        owners = [Owner.of(pod, world.cluster.listers) for pod in world.pods()]
        self._seen = {one.name for one in owners if one.kind == kind and namespace in ("", one.namespace)}
        self._where = f" in namespace {namespace}" if namespace else ""
        self._kind, self._name = kind.lower(), name
        super().__init__(self.among(()))

    def among(self, existing: Iterable[str]) -> str:
        """Return the message, with the names of owners that are known to exist."""
        known = self._seen.union(existing)
        if self._name in known:
            return f"no pod of {self._kind} {self._name}{self._where} is pending"
        return absent(self._kind, self._name, known, self._where)


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
            raise NoPendingError(world, kind, name, namespace)
        pods = of
    elif namespace and world.namespaces and namespace not in world.namespaces:
        raise ExplainError(absent("namespace", namespace, world.namespaces))
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
