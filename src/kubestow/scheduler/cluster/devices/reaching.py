"""Which slices of a pool a node can use, without looking at all of them.

Slices that the same nodes can use are looked at together. Those that want a node of some name, or with one of some
values of a label, are found by that value; only what cannot be found so is looked at for every node.
"""

from collections.abc import Hashable, Iterable

from kubestow.api.labels import ONE_OF
from kubestow.api.node import Node
from kubestow.api.node_selector import NODE_NAME_FIELD, NodeTerm
from kubestow.scheduler.cluster.devices.entries import Reach, SliceEntry

Value = tuple[str, str]
"""A label, or the field of the name, and its value."""


class ReachIndex:
    """Slices that several nodes may use."""

    def __init__(self, slices: Iterable[SliceEntry]) -> None:
        alike: dict[Hashable, list[SliceEntry]] = {}
        for entry in slices:
            reach = entry.reach
            alike.setdefault((reach.all_nodes, reach.selector) if reach.is_known else entry.name, []).append(entry)
        self._groups = list(alike.values())
        self._by_value: dict[Value, list[int]] = {}
        self._others: list[int] = []
        for number, (first, *_) in enumerate(self._groups):
            values = _values_of_slice(first)
            if values is None:
                self._others.append(number)
            for value in values or ():
                self._by_value.setdefault(value, []).append(number)

    def groups_for(self, node: Node | None) -> list[list[SliceEntry]]:
        """The slices that a node can use, those together that the same nodes can."""
        numbers = set(self._others)
        if node is not None and self._by_value:
            for value in ((NODE_NAME_FIELD, node.metadata.name), *node.metadata.labels.items()):
                numbers.update(self._by_value.get(value, ()))
        found = (self._groups[number] for number in sorted(numbers))
        return [group for group in found if group[0].includes(node)]


def _values_of_slice(entry: SliceEntry) -> set[Value] | None:
    """What a node must have one of to use any device of a slice; None: any node might."""
    if entry.reach.is_known or not entry.per_device:
        return _values_of(entry.reach)
    return _united(None if device.reach is None else _values_of(device.reach) for device in entry.devices)


def _values_of(reach: Reach) -> set[Value] | None:
    if reach.name:
        return {(NODE_NAME_FIELD, reach.name)}
    if reach.all_nodes:
        return None
    return set() if reach.terms is None else _united(map(_values_of_term, reach.terms.terms))


def _values_of_term(term: NodeTerm) -> set[Value] | None:
    for condition in (*term.fields, *term.labels):
        if condition.operator in ONE_OF:
            return {(condition.key, value) for value in condition.values}
    return None


def _united(found: Iterable[set[Value] | None]) -> set[Value] | None:
    union: set[Value] = set()
    for values in found:
        if values is None:
            return None
        union |= values
    return union
