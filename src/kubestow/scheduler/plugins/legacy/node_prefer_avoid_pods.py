"""NodePreferAvoidPods: scores down nodes whose annotation names the pod's controller as one to avoid."""

from collections.abc import Hashable
from typing import Any

import msgspec
import numpy as np

from kubestow.api.codec import NOT_JSON
from kubestow.api.meta import OwnerReference, controller_of
from kubestow.api.node import Node
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_numbers
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import MAX_SCORE

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_CONTROLLERS = ("ReplicationController", "ReplicaSet")


class _Signature(msgspec.Struct):
    podController: OwnerReference | None = None


class _Avoided(msgspec.Struct):
    podSignature: _Signature = msgspec.field(default_factory=_Signature)


class _Annotation(msgspec.Struct):
    preferAvoidPods: list[_Avoided] | None = None


class NodePreferAvoidPods:
    """Prefers nodes whose annotation does not name the pod's controller."""

    name = "NodePreferAvoidPods"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        return _controller_of(pod)

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        numbers, controller = row_numbers(rows), _controller_of(pod)
        scores: IntArray = np.full(len(numbers), MAX_SCORE, np.int64)
        if controller is not None:
            for position, row in enumerate(numbers.tolist()):
                node = view.nodes[row]
                if node is not None and ANNOTATION in node.metadata.annotations and controller in _avoided_by(node):
                    scores[position] = 0
        return scores


def _controller_of(pod: PodInfo) -> tuple[str, str] | None:
    """Return kind and UID of the pod's controller, None if its kind cannot be avoided."""
    owner = controller_of(pod.pod.metadata)
    return None if owner is None or owner.kind not in _CONTROLLERS else (owner.kind, owner.uid)


def _avoided_by(node: Node) -> set[tuple[str, str]]:
    """Return the controllers that the annotation names; an invalid annotation names none."""
    try:
        read = msgspec.json.decode(node.metadata.annotations[ANNOTATION], type=_Annotation)
    except NOT_JSON:
        return set()
    owners = (avoided.podSignature.podController for avoided in read.preferAvoidPods or ())
    return {(owner.kind, owner.uid) for owner in owners if owner is not None}
