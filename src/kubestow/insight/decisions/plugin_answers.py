"""Answers of plugins that cannot be asked again, because they may depend on more than the pod and the cluster.

While a cycle runs, a `RecordingGuard` stands around these plugins and notes what they answer. When the decision is
evaluated again, a `ReplayingGuard` answers in their place. Answers about nodes are kept by row number.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray, row_numbers
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.framework.guard import Guard
from kubestow.scheduler.framework.results import Narrowed, Rejection, Rejections, Skip

_ABOUT_PODS = ("pre_filter", "pre_score")
_ABOUT_ROWS = ("filter_rows", "score_rows", "normalize")
_ENTRY_BYTES = 300
_WORDS_BYTES = 400
_NAME_BYTES = 100

Key = tuple[str, str, str, bool]
"""Plugin, method, UID of the pod, and whether the plugin was asked about a what-if."""


class Answer(NamedTuple):
    """What a plugin answered about some rows, or about the pod; or what it raised."""

    rows: IntArray
    values: IntArray
    words: dict[int, Rejection]
    """The meaning of the values of a filter other than 0."""
    whole: Any = None
    """An answer that is not about rows."""
    error: BaseException | None = None

    @property
    def nbytes(self) -> int:
        names = len(self.whole.nodes) if isinstance(self.whole, Narrowed) else 0
        texts = sum(len(reason) for rejection in self.words.values() for reason in rejection.reasons)
        words = _WORDS_BYTES * len(self.words) + texts + _NAME_BYTES * names
        return _ENTRY_BYTES + self.rows.nbytes + self.values.nbytes + words


Answers = dict[Key, list[Answer]]
_NO_ROWS: IntArray = np.zeros(0, np.int64)


class RecordingGuard(Guard):
    """Notes the answers of the plugins of a profile, until they are taken."""

    allows_single_rows = False

    def __init__(self) -> None:
        super().__init__()
        self.noted: Answers = {}

    def take(self) -> Answers:
        """Return the answers since the last call."""
        answers, self.noted = self.noted, {}
        return answers

    def around(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        guarded = super().around(function, plugin, method, columns=columns)
        if method not in _ABOUT_PODS + _ABOUT_ROWS:
            return guarded

        def recorded(*args: Any) -> Any:
            uid, rows, is_what_if = _subject(method, args)
            noted = self.noted.setdefault((plugin, method, uid, is_what_if), [])
            try:
                answer = guarded(*args)
            except BaseException as error:
                noted.append(Answer(rows, _NO_ROWS, {}, error=error))
                raise
            noted.append(_noted(method, rows, answer))
            return answer

        return recorded


class ReplayingGuard(Guard):
    """Answers in place of plugins, from what was recorded."""

    allows_single_rows = False

    def __init__(self, answers: Answers, table: NodeTable) -> None:
        super().__init__()
        self._answers = answers
        self._table = table

    def around(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        if method == "with_changes":
            # A state is only needed by the plugin itself, which is not asked.
            return lambda *_args: None
        if method == "counted_rows":
            return lambda *_args: np.ones(self._table.size, np.bool_)
        if method not in _ABOUT_PODS + _ABOUT_ROWS:
            return super().around(function, plugin, method, columns=columns)

        def replayed(*args: Any) -> Any:
            uid, rows, is_what_if = _subject(method, args)
            answers = self._answers.get((plugin, method, uid, is_what_if))
            if not answers:
                raise LookupError("what it answered then is not known")
            if answers[-1].error is not None:
                raise answers[-1].error
            return answers[-1].whole if method in _ABOUT_PODS else _joined(method, rows, answers)

        return replayed


def _subject(method: str, args: tuple[Any, ...]) -> tuple[str, IntArray, bool]:
    """Return the UID of the pod and the rows of the table that a call is about, and whether they are a what-if."""
    if method in _ABOUT_PODS:
        return args[0].uid, _NO_ROWS, False
    view, rows = args[2], row_numbers(args[3])
    return args[1].uid, view.source_rows()[rows], not isinstance(view, NodeTable)


def _noted(method: str, rows: IntArray, answer: Any) -> Answer:
    if method in _ABOUT_PODS:
        # A state is only needed by the plugin itself, which will not be asked.
        whole = answer if isinstance(answer, Skip | Rejection) else None
        return Answer(rows, _NO_ROWS, {}, Narrowed(answer.nodes) if isinstance(answer, Narrowed) else whole)
    if answer is None:
        return Answer(rows, np.zeros(len(rows), np.int64), {})
    if not isinstance(answer, Rejections):
        return Answer(rows, np.array(answer, np.int64), {})
    kinds = np.array(answer.kinds, np.int64)
    words = {kind: answer.words(kind) for kind in np.unique(kinds).tolist() if kind}
    return Answer(rows, kinds, words, answer.failed)


def _joined(method: str, rows: IntArray, answers: list[Answer]) -> Any:
    """Return the last answer about each row. Rows that were not asked about had been rejected before."""
    size = 1 + max(int(part.max(initial=0)) for part in (rows, *(answer.rows for answer in answers)))
    values: IntArray = np.zeros(size, np.int64)
    words: list[Rejection] = []
    for answer in answers:
        numbered = answer.values.copy()
        for kind, rejection in answer.words.items():
            words.append(rejection)
            numbered[answer.values == kind] = len(words)
        if len(numbered):
            values[answer.rows] = numbered
    if method != "filter_rows":
        return values[rows]
    failed = next((answer.whole for answer in reversed(answers) if answer.whole is not None), None)
    return Rejections(values[rows], lambda kind: words[kind - 1], failed)
