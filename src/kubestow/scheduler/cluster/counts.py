"""Pods counted by row and by topology domain.

`MatchCounts` counts the pods that match a query ("pods of these namespaces that match this selector"); a query
is counted once when it is first asked, and updated by each pod event from then on. `CarriedTerms` counts the pods that
carry an affinity term, for every distinct term. Both return counts per row and per domain of a topology key, so that
a cycle costs O(nodes), never O(pods).

Pods with the same namespace and labels match the same questions. They are kept together, so that a pod event looks up
its kind instead of evaluating selectors, and a new query is evaluated once per kind.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import numpy as np

from kubestow.api.labels import Selector
from kubestow.scheduler.cluster.affinity_terms import CarriedTerm
from kubestow.scheduler.cluster.arrays import CountArray, grown
from kubestow.scheduler.cluster.labels import LabelColumn
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.selector_index import SelectorIndex

_MAX_QUESTIONS = 2_048

ColumnOf = Callable[[str], LabelColumn]


class _DomainSums:
    """Sums by value ID of one topology key."""

    __slots__ = ("column", "sums")

    def __init__(self, column: LabelColumn, sums: CountArray) -> None:
        self.column = column
        self.sums = sums

    def grow_to(self, size: int) -> None:
        if len(self.sums) < size:
            self.sums = grown(self.sums, max(size, 2 * len(self.sums)))


class RowCounts:
    """A number per row, and its sums per domain for the topology keys that were requested."""

    __slots__ = ("_column_of", "_domains", "_rows", "total")

    def __init__(self, column_of: ColumnOf) -> None:
        self.total = 0
        self._rows: CountArray = np.zeros(8, np.int32)
        self._column_of = column_of
        self._domains: dict[str, _DomainSums] = {}

    def copy(self, column_of: ColumnOf) -> "RowCounts":
        """Return an independent copy over other columns; sums per domain are recomputed on demand."""
        other = RowCounts(column_of)
        other.total, other._rows = self.total, self._rows.copy()
        return other

    def add(self, row: int, amount: int) -> None:
        if row >= len(self._rows):
            self._rows = grown(self._rows, max(row + 1, 2 * len(self._rows)))
        self._rows[row] += amount
        self.total += amount
        for domains in self._domains.values():
            domain = int(domains.column.ids[row])
            domains.grow_to(domain + 1)
            domains.sums[domain] += amount

    def add_rows(self, amounts: Mapping[int, int]) -> None:
        """Add to many rows at once; must be called before the first `by_domain`."""
        assert not self._domains
        rows = np.fromiter(amounts, np.int64, len(amounts))
        size = int(rows.max(initial=-1)) + 1
        if size > len(self._rows):
            self._rows = grown(self._rows, size)
        self._rows[rows] += np.fromiter(amounts.values(), np.int32, len(amounts))
        self.total += sum(amounts.values())

    def by_row(self, size: int) -> CountArray:
        """Return the numbers of the first `size` rows."""
        if len(self._rows) < size:
            self._rows = grown(self._rows, size)
        return self._rows[:size]

    def by_domain(self, key: str) -> CountArray:
        """Return the sums by value ID of a topology key; index 0 is the sum of the rows without the label."""
        domains = self._domains.get(key)
        if domains is None:
            column = self._column_of(key)
            size = min(len(self._rows), len(column.ids))
            sums = np.bincount(column.ids[:size], weights=self._rows[:size], minlength=len(column.values))
            domains = self._domains[key] = _DomainSums(column, sums.astype(np.int32))
        size = len(domains.column.values)
        domains.grow_to(size)
        return domains.sums[:size]


class Scope(msgspec.Struct, frozen=True):
    """Pods of some namespaces (None: of all) that match a selector."""

    namespaces: frozenset[str] | None
    selector: Selector

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod is in the scope."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class PodQuery(msgspec.Struct, frozen=True):
    """Matches the pods that are in all of the scopes."""

    scopes: tuple[Scope, ...]
    skip_terminating: bool


class _Kind(msgspec.Struct, frozen=True):
    """The properties of a pod that decide which questions it matches."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool


class _PodsOfKind:
    """The placed pods of one kind: their number by row, and the counts that include them."""

    __slots__ = ("answers", "labels", "rows")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.answers: list[RowCounts] = []

    def copy(self) -> "_PodsOfKind":
        """Return an independent copy that no counts include."""
        other = _PodsOfKind(self.labels)
        other.rows = self.rows.copy()
        return other


def _covers(query: PodQuery, kind: _Kind, labels: Mapping[str, str]) -> bool:
    if query.skip_terminating and kind.terminating:
        return False
    return all(scope.covers(kind.namespace, labels) for scope in query.scopes)


class MatchCounts:
    """Counts for questions, updated by each pod event. The least recently asked ones are dropped over a limit."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self._answers: dict[PodQuery, RowCounts] = {}
        self._index: SelectorIndex[PodQuery] = SelectorIndex()
        self._pods_by_kind: dict[_Kind, _PodsOfKind] = {}

    def copy(self, column_of: ColumnOf) -> "MatchCounts":
        """Return an independent copy over other columns; questions are counted again on demand."""
        other = MatchCounts(column_of)
        other._pods_by_kind = {kind: pods.copy() for kind, pods in self._pods_by_kind.items()}
        return other

    def count(self, query: PodQuery) -> RowCounts:
        """Return the number of matching pods on each row."""
        answer = self._answers.pop(query, None)
        if answer is None:
            if len(self._answers) >= _MAX_QUESTIONS:
                self._drop(next(iter(self._answers)))
            answer = self._count(query)
        # Ordered by the last use: the first one is the next to be dropped.
        self._answers[query] = answer
        return answer

    def _count(self, query: PodQuery) -> RowCounts:
        answer = RowCounts(self._column_of)
        for kind, pods in self._pods_by_kind.items():
            if _covers(query, kind, pods.labels):
                pods.answers.append(answer)
                answer.add_rows(pods.rows)
        self._index.add(query.scopes[0].selector, query)
        return answer

    def _drop(self, query: PodQuery) -> None:
        answer = self._answers.pop(query)
        self._index.remove(query.scopes[0].selector, query)
        for pods in self._pods_by_kind.values():
            if answer in pods.answers:
                pods.answers.remove(answer)

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        """Count a pod on a row (1), or remove it (-1)."""
        kind = _Kind(pod.namespace, frozenset(pod.labels.items()), pod.terminating)
        pods = self._pods_by_kind.get(kind)
        if pods is None:
            pods = self._pods_by_kind[kind] = self._first_of(kind, pod.labels)
        count = pods.rows.get(row, 0) + amount
        if count:
            pods.rows[row] = count
        else:
            del pods.rows[row]
            if not pods.rows:
                del self._pods_by_kind[kind]
        for answer in pods.answers:
            answer.add(row, amount)

    def _first_of(self, kind: _Kind, labels: Mapping[str, str]) -> _PodsOfKind:
        pods = _PodsOfKind(labels)
        for query in self._index.matching(labels):
            if _covers(query, kind, labels):
                pods.answers.append(self._answers[query])
        return pods

    def items(self) -> Iterable[tuple[PodQuery, RowCounts]]:
        return self._answers.items()

    def kinds(self) -> Iterator[tuple[str, Mapping[str, str], Iterable[int]]]:
        """Yield each namespace with the labels of some of its pods, and the rows where such pods are."""
        for kind, pods in self._pods_by_kind.items():
            yield kind.namespace, pods.labels, pods.rows


class CarriedTerms:
    """The number of pods on each row that carry each distinct term."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self.version = 0
        """Incremented with every term that is added or removed."""
        self._counts: dict[CarriedTerm, RowCounts] = {}
        self._index: SelectorIndex[CarriedTerm] = SelectorIndex()

    def copy(self, column_of: ColumnOf) -> "CarriedTerms":
        """Return an independent copy over other columns."""
        other = CarriedTerms(column_of)
        other.version, other._index = self.version, self._index.copy()
        other._counts = {carried: counts.copy(column_of) for carried, counts in self._counts.items()}
        return other

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        """Count a pod on a row (1), or remove it (-1)."""
        for carried in pod.terms.carried:
            counts = self._counts.get(carried)
            if counts is None:
                counts = self._counts[carried] = RowCounts(self._column_of)
                self._index.add(carried.term.selector, carried)
                self.version += 1
            counts.add(row, amount)
            if counts.total == 0:
                del self._counts[carried]
                self._index.remove(carried.term.selector, carried)
                self.version += 1

    def matching(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> Iterator[tuple[CarriedTerm, RowCounts]]:
        """Yield the terms that select a pod, with the counts of their carriers."""
        if not self._counts:
            return
        for carried in self._index.matching(pod.labels):
            if carried.term.names(pod.namespace, namespace_labels):
                yield carried, self._counts[carried]

    def items(self) -> Iterable[tuple[CarriedTerm, RowCounts]]:
        return self._counts.items()
