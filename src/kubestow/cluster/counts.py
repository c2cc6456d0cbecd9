"""Pods counted by row and by topology domain.

`MatchCounts` counts the pods that a question is about ("pods of these namespaces that match this selector"); a question
is counted once over all pods when it is first asked, and kept up to date by each pod event from then on. `CarriedTerms`
counts the pods that carry an affinity term, for every distinct term. Both answer per row and per domain of a topology
key, so that a cycle costs O(nodes), never O(pods).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from kubestow.cluster.affinity_terms import Term
from kubestow.cluster.arrays import IntArray, grown
from kubestow.cluster.labels import LabelColumn
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.selector_index import SelectorIndex
from kubestow.model.labels import Selector

_MOST_QUESTIONS = 4_096

ColumnOf = Callable[[str], LabelColumn]


class RowCounts:
    """A number per row, and its sums per domain for the topology keys that were asked for."""

    __slots__ = ("_column_of", "_domains", "rows", "total")

    def __init__(self, column_of: ColumnOf, capacity: int) -> None:
        self.rows: IntArray = np.zeros(capacity, np.int64)
        self.total = 0
        self._column_of = column_of
        self._domains: dict[str, IntArray] = {}

    def add(self, row: int, amount: int) -> None:
        if row >= len(self.rows):
            self.rows = grown(self.rows, max(row + 1, 2 * len(self.rows)))
        self.rows[row] += amount
        self.total += amount
        for key, sums in self._domains.items():
            domain = int(self._column_of(key).ids[row])
            if domain >= len(sums):
                sums = self._domains[key] = grown(sums, max(domain + 1, 2 * len(sums)))
            sums[domain] += amount

    def by_row(self, size: int) -> IntArray:
        """The numbers of the first `size` rows."""
        if len(self.rows) < size:
            self.rows = grown(self.rows, size)
        return self.rows[:size]

    def by_domain(self, key: str) -> IntArray:
        """The sums by value id of a topology key; index 0 collects the rows without the label."""
        column = self._column_of(key)
        sums = self._domains.get(key)
        if sums is None:
            ids = column.ids[: len(self.rows)]
            counted = np.bincount(ids, weights=self.rows[: len(ids)], minlength=len(column.values))
            sums = self._domains[key] = counted.astype(np.int64)
        elif len(sums) < len(column.values):
            sums = self._domains[key] = grown(sums, len(column.values))
        return sums


class Scope(NamedTuple):
    """Pods of some namespaces that match a selector."""

    namespaces: frozenset[str]
    selector: Selector

    def covers(self, pod: PodInfo) -> bool:
        return pod.namespace in self.namespaces and self.selector.matches(pod.labels)


class Question(NamedTuple):
    """Pods that are in every one of the scopes."""

    scopes: tuple[Scope, ...]
    skip_terminating: bool

    def covers(self, pod: PodInfo) -> bool:
        if self.skip_terminating and pod.terminating:
            return False
        return all(scope.covers(pod) for scope in self.scopes)


class MatchCounts:
    """Answers to questions, kept up to date. The least recently asked are dropped when there are too many."""

    def __init__(self, column_of: ColumnOf, placed_pods: Callable[[], Iterator[tuple[int, PodInfo]]]) -> None:
        self._column_of = column_of
        self._placed_pods = placed_pods
        self._answers: dict[Question, RowCounts] = {}
        self._index: SelectorIndex[Question] = SelectorIndex()

    def ask(self, question: Question) -> RowCounts:
        """How many pods on each row the question is about."""
        answer = self._answers.pop(question, None)
        if answer is None:
            answer = self._count(question)
        # Kept in the order of asking: the first is the one to drop.
        self._answers[question] = answer
        return answer

    def _count(self, question: Question) -> RowCounts:
        if len(self._answers) >= _MOST_QUESTIONS:
            oldest = next(iter(self._answers))
            del self._answers[oldest]
            self._index.remove(oldest.scopes[0].selector, oldest)
        answer = RowCounts(self._column_of, 0)
        for row, pod in self._placed_pods():
            if question.covers(pod):
                answer.add(row, 1)
        self._index.add(question.scopes[0].selector, question)
        return answer

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        for question in self._index.matching(pod.labels):
            if question.covers(pod):
                self._answers[question].add(row, amount)

    def items(self) -> Iterable[tuple[Question, RowCounts]]:
        return self._answers.items()


class TermKind(IntEnum):
    REQUIRED = 0
    REQUIRED_ANTI = 1
    PREFERRED = 2
    PREFERRED_ANTI = 3


class CarriedTerm(NamedTuple):
    """A term as pods carry it; the weight is that of a preferred term, else 0."""

    kind: TermKind
    term: Term
    weight: int


class CarriedTerms:
    """How many pods on each row carry each distinct term."""

    def __init__(self, column_of: ColumnOf) -> None:
        self._column_of = column_of
        self._counts: dict[CarriedTerm, RowCounts] = {}
        self._index: SelectorIndex[CarriedTerm] = SelectorIndex()

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        for carried in terms_carried_by(pod):
            counts = self._counts.get(carried)
            if counts is None:
                counts = self._counts[carried] = RowCounts(self._column_of, 0)
                self._index.add(carried.term.selector, carried)
            counts.add(row, amount)
            if counts.total == 0:
                del self._counts[carried]
                self._index.remove(carried.term.selector, carried)

    def about(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> Iterator[tuple[CarriedTerm, RowCounts]]:
        """The terms that speak of a pod, with who carries them."""
        if not self._counts:
            return
        for carried in self._index.matching(pod.labels):
            if carried.term.matches(pod.namespace, pod.labels, namespace_labels):
                yield carried, self._counts[carried]

    def items(self) -> Iterable[tuple[CarriedTerm, RowCounts]]:
        return self._counts.items()


def terms_carried_by(pod: PodInfo) -> Iterator[CarriedTerm]:
    terms = pod.terms
    for term in terms.required:
        yield CarriedTerm(TermKind.REQUIRED, term, 0)
    for term in terms.required_anti:
        yield CarriedTerm(TermKind.REQUIRED_ANTI, term, 0)
    for term, weight in terms.preferred:
        yield CarriedTerm(TermKind.PREFERRED, term, weight)
    for term, weight in terms.preferred_anti:
        yield CarriedTerm(TermKind.PREFERRED_ANTI, term, weight)
