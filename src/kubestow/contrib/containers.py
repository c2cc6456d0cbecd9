"""The resources of the containers of a pod, and what plugins derive from them for the pods of a node."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kubestow.plugin import Pod, PodInfo

T = TypeVar("T")


def signature_of(pod: Pod) -> Hashable:
    """Return the requests and limits of containers, init containers and the pod itself, as they are written."""
    spec, level = pod.spec, pod.spec.resources
    return (
        tuple([(_items(one.resources.requests), _items(one.resources.limits)) for one in spec.containers]),
        tuple(
            [
                (_items(one.resources.requests), _items(one.resources.limits), one.restartPolicy == "Always")
                for one in spec.initContainers
            ]
        ),
        _items(spec.overhead),
        None if level is None else (_items(level.requests), _items(level.limits)),
    )


def _items(amounts: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(amounts.items())


class ByPod(Generic[T]):
    """Values of the pods of each node, which are computed once for each version of a pod."""

    def __init__(self, compute: Callable[[Pod], T]) -> None:
        self._compute = compute
        self._known: dict[str, dict[str, tuple[Pod, T]]] = {}

    def of_node(self, node: str, pods: Sequence[PodInfo]) -> list[T]:
        """Return the values of `pods`, which are all pods of a node that matter."""
        known, found = self._known.pop(node, {}), dict[str, tuple[Pod, T]]()
        for info in pods:
            entry = known.get(info.uid)
            found[info.uid] = (
                (info.pod, self._compute(info.pod)) if entry is None or entry[0] is not info.pod else entry
            )
        if found:
            self._known[node] = found
        return [value for _, value in found.values()]
