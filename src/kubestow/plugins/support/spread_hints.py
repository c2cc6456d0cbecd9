"""Which events may even out the spread that a pod waits for."""

from collections.abc import Callable, Sequence

from kubestow.cluster.events import Action, Registration, Resource, on
from kubestow.model.node import Node
from kubestow.model.pod import Pod
from kubestow.plugins.support.spread_constraints import Constraint


class SpreadHints:
    """Judges events by the hard constraints of the waiting pod."""

    def __init__(self, constraints_of: Callable[[Pod], Sequence[Constraint]]) -> None:
        self._constraints_of = constraints_of

    def registrations(self) -> Sequence[Registration]:
        pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
        node_actions = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return [
            on(Resource.POD, pod_actions, self._pod_changed, alike=True),
            on(Resource.NODE, node_actions, self._node_changed, alike=True),
        ]

    def _pod_changed(self, waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
        if not all(_is_involved(pod, waiting) for pod in (old, new) if pod is not None):
            return False
        constraints = self._constraints_of(waiting)
        if old is not None and new is not None:
            return _was_changed_for(waiting, old, new, constraints)
        seen = new or old
        return seen is not None and any(c.selector.matches(seen.metadata.labels) for c in constraints)

    def _node_changed(self, waiting: Pod, old: Node | None, new: Node | None) -> bool:
        constraints = self._constraints_of(waiting)
        was_member = old is not None and _has_every_key(old, constraints)
        is_member = new is not None and _has_every_key(new, constraints)
        if old is None or new is None:
            return was_member or is_member
        if was_member != is_member:
            return True
        return is_member and (_moved(old, new, constraints) or old.spec.taints != new.spec.taints)


def _is_involved(pod: Pod, waiting: Pod) -> bool:
    """Whether a pod may matter to the spread: it is the waiting one, or a neighbour that has or expects a node."""
    if pod.metadata.uid == waiting.metadata.uid:
        return True
    is_placed = bool(pod.spec.nodeName or pod.status.nominatedNodeName)
    return is_placed and pod.metadata.namespace == waiting.metadata.namespace


def _was_changed_for(waiting: Pod, old: Pod, new: Pod, constraints: Sequence[Constraint]) -> bool:
    tolerates_more = new.metadata.uid == waiting.metadata.uid and old.spec.tolerations != new.spec.tolerations
    if tolerates_more and any(constraint.honors_taints for constraint in constraints):
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return any(c.selector.matches(before) != c.selector.matches(after) for c in constraints)


def _has_every_key(node: Node, constraints: Sequence[Constraint]) -> bool:
    return all(constraint.key in node.metadata.labels for constraint in constraints)


def _moved(old: Node, new: Node, constraints: Sequence[Constraint]) -> bool:
    """Whether a node is in another domain of one of the constraints."""
    before, after = old.metadata.labels, new.metadata.labels
    return any(before.get(constraint.key, "") != after.get(constraint.key, "") for constraint in constraints)
