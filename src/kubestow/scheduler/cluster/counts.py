"""Pods counted by row and by topology domain.

`MatchCounts` counts the pods that a question is about ("pods of these namespaces that match this selector"); a question
is counted once when it is first asked, and kept up to date by each pod event from then on. `CarriedTerms` counts the
pods that carry an affinity term, for every distinct term. Both answer per row and per domain of a topology key, so that
a cycle costs O(nodes), never O(pods).

Pods with the same namespace and labels are in the same answers. They are kept together, so that a pod event looks up
its kind instead of trying selectors, and a new question is tried on each kind once.
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

_MOST_QUESTIONS = 2_048

ColumnOf = Callable[[str], LabelColumn]


class _DomainSums:
    """Sums by value id of one topology key."""

    __slots__ = ("column", "sums")

    def __init__(self, column: LabelColumn, sums: CountArray) -> None:
        self.column = column
        self.sums = sums

    def reach(self, size: int) -> None:
        if len(self.sums) < size:
            self.sums = grown(self.sums, max(size, 2 * len(self.sums)))


class RowCounts:
    """A number per row, and its sums per domain for the topology keys that were asked for."""

    __slots__ = ("_column_of", "_domains", "_rows", "total")

    def __init__(self, column_of: ColumnOf) -> None:
        self.total = 0
        self._rows: CountArray = np.zeros(8, np.int32)
        self._column_of = column_of
        self._domains: dict[str, _DomainSums] = {}

    def copy(self, column_of: ColumnOf) -> "RowCounts":
        """Return an independent copy over other columns; sums per domain are counted again when asked for."""
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
            domains.reach(domain + 1)
            domains.sums[domain] += amount

    def add_rows(self, amounts: Mapping[int, int]) -> None:
        """Add to many rows at once, before any domains were asked for."""
        assert not self._domains
        rows = np.fromiter(amounts, np.int64, len(amounts))
        size = int(rows.max(initial=-1)) + 1
        if size > len(self._rows):
            self._rows = grown(self._rows, size)
        self._rows[rows] += np.fromiter(amounts.values(), np.int32, len(amounts))
        self.total += sum(amounts.values())

    def by_row(self, size: int) -> CountArray:
        """The numbers of the first `size` rows."""
        if len(self._rows) < size:
            self._rows = grown(self._rows, size)
        return self._rows[:size]

    def by_domain(self, key: str) -> CountArray:
        """The sums by value id of a topology key; index 0 collects the rows without the label."""
        domains = self._domains.get(key)
        if domains is None:
            column = self._column_of(key)
            size = min(len(self._rows), len(column.ids))
            sums = np.bincount(column.ids[:size], weights=self._rows[:size], minlength=len(column.values))
            domains = self._domains[key] = _DomainSums(column, sums.astype(np.int32))
        size = len(domains.column.values)
        domains.reach(size)
        return domains.sums[:size]


class Scope(msgspec.Struct, frozen=True):
    """Pods of some namespaces (None: of any) that match a selector."""

    namespaces: frozenset[str] | None
    selector: Selector

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of them."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class Question(msgspec.Struct, frozen=True):
    """Pods that are in every one of the scopes."""

    scopes: tuple[Scope, ...]
    skip_terminating: bool


class _Kind(msgspec.Struct, frozen=True):
    """What answers depend on."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool


class _Alike:
    """The placed pods of one kind: how many on which row, and the answers they count in."""

    __slots__ = ("answers", "labels", "rows")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.answers: list[RowCounts] = []

    def copy(self) -> "_Alike":
        """Return an independent copy that counts in no answers."""
        other = _Alike(self.labels)
        other.rows = self.rows.copy()
        return other


def _covers(question: Question, kind: _Kind, labels: Mapping[str, str]) -> bool:
    if question.skip_terminating and kind.terminating:
        return False
    return all(scope.covers(kind.namespace, labels) for scope in question.scopes)


class MatchCounts:
    """Answers to questions, kept up to date. The least recently asked are dropped when there are too many."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self._answers: dict[Question, RowCounts] = {}
        self._index: SelectorIndex[Question] = SelectorIndex()
        self._alike: dict[_Kind, _Alike] = {}

    def copy(self, column_of: ColumnOf) -> "MatchCounts":
        """Return an independent copy over other columns; answers are counted again when asked for."""
        other = MatchCounts(column_of)
        other._alike = {kind: alike.copy() for kind, alike in self._alike.items()}
        return other

    def ask(self, question: Question) -> RowCounts:
        """How many pods on each row the question is about."""
        answer = self._answers.pop(question, None)
        if answer is None:
            if len(self._answers) >= _MOST_QUESTIONS:
                self._drop(next(iter(self._answers)))
            answer = self._count(question)
        # Kept in the order of asking: the first is the one to drop.
        self._answers[question] = answer
        return answer

    def _count(self, question: Question) -> RowCounts:
        answer = RowCounts(self._column_of)
        for kind, alike in self._alike.items():
            if _covers(question, kind, alike.labels):
                alike.answers.append(answer)
                answer.add_rows(alike.rows)
        self._index.add(question.scopes[0].selector, question)
        return answer

    def _drop(self, question: Question) -> None:
        answer = self._answers.pop(question)
        self._index.remove(question.scopes[0].selector, question)
        for alike in self._alike.values():
            if answer in alike.answers:
                alike.answers.remove(answer)

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        """A pod is on a row (1), or no longer (-1)."""
        kind = _Kind(pod.namespace, frozenset(pod.labels.items()), pod.terminating)
        alike = self._alike.get(kind)
        if alike is None:
            alike = self._alike[kind] = self._first_of(kind, pod.labels)
        count = alike.rows.get(row, 0) + amount
        if count:
            alike.rows[row] = count
        else:
            del alike.rows[row]
            if not alike.rows:
                del self._alike[kind]
        for answer in alike.answers:
            answer.add(row, amount)

    def _first_of(self, kind: _Kind, labels: Mapping[str, str]) -> _Alike:
        alike = _Alike(labels)
        for question in self._index.matching(labels):
            if _covers(question, kind, labels):
                alike.answers.append(self._answers[question])
        return alike

    def items(self) -> Iterable[tuple[Question, RowCounts]]:
        return self._answers.items()


class CarriedTerms:
    """How many pods on each row carry each distinct term."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self.version = 0
        """Grows with every term that is new here, or gone."""
        self._counts: dict[CarriedTerm, RowCounts] = {}
        self._index: SelectorIndex[CarriedTerm] = SelectorIndex()

    def copy(self, column_of: ColumnOf) -> "CarriedTerms":
        """Return an independent copy over other columns."""
        other = CarriedTerms(column_of)
        other.version, other._index = self.version, self._index.copy()
        other._counts = {carried: counts.copy(column_of) for carried, counts in self._counts.items()}
        return other

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        """A pod is on a row (1), or no longer (-1)."""
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

    def about(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> Iterator[tuple[CarriedTerm, RowCounts]]:
        """The terms that speak of a pod, with who carries them."""
        if not self._counts:
            return
        for carried in self._index.matching(pod.labels):
            if carried.term.names(pod.namespace, namespace_labels):
                yield carried, self._counts[carried]

    def items(self) -> Iterable[tuple[CarriedTerm, RowCounts]]:
        return self._counts.items()
