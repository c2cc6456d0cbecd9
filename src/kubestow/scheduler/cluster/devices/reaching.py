"""An index of the slices of a pool, by the nodes that can use them.

Slices that the same nodes can use are grouped. Those that require a node name, or one of several values of a label, are
found by that value; only the others are evaluated for every node.
"""

from collections.abc import Hashable, Iterable

from kubestow.api.labels import ONE_OF
from kubestow.api.node import Node
from kubestow.api.node_selector import NODE_NAME_FIELD, NodeTerm
from kubestow.scheduler.cluster.devices.entries import Reach, SliceEntry

Value = tuple[str, str]
"""A label key, or the name field, and its value."""


class ReachIndex:
    """Slices that several nodes may use."""

    def __init__(self, slices: Iterable[SliceEntry]) -> None:
        groups: dict[Hashable, list[SliceEntry]] = {}
        for entry in slices:
            reach = entry.reach
            groups.setdefault((reach.all_nodes, reach.selector) if reach.is_known else entry.name, []).append(entry)
        self._groups = list(groups.values())
        self._by_value: dict[Value, list[int]] = {}
        self._others: list[int] = []
        for number, (first, *_) in enumerate(self._groups):
            values = _values_of_slice(first)
            if values is None:
                self._others.append(number)
            for value in values or ():
                self._by_value.setdefault(value, []).append(number)

    def groups_for(self, node: Node | None) -> list[list[SliceEntry]]:
        """Return the slices that a node can use, grouped by the nodes that can use them."""
        numbers = set(self._others)
        if node is not None and self._by_value:
            for value in ((NODE_NAME_FIELD, node.metadata.name), *node.metadata.labels.items()):
                numbers.update(self._by_value.get(value, ()))
        found = (self._groups[number] for number in sorted(numbers))
        return [group for group in found if group[0].includes(node)]


def _values_of_slice(entry: SliceEntry) -> set[Value] | None:
    """Return values of which a node must have one to use any device of a slice; None: any node may use it."""
    if entry.reach.is_known or not entry.per_device:
        return _values_of(entry.reach)
    return _union(None if device.reach is None else _values_of(device.reach) for device in entry.devices)


def _values_of(reach: Reach) -> set[Value] | None:
    if reach.name:
        return {(NODE_NAME_FIELD, reach.name)}
    if reach.all_nodes:
        return None
    return set() if reach.terms is None else _union(map(_values_of_term, reach.terms.terms))


def _values_of_term(term: NodeTerm) -> set[Value] | None:
    for condition in (*term.fields, *term.labels):
        if condition.operator in ONE_OF:
            return {(condition.key, value) for value in condition.values}
    return None


def _union(found: Iterable[set[Value] | None]) -> set[Value] | None:
    union: set[Value] = set()
    for values in found:
        if values is None:
            return None
        union |= values
    return union
