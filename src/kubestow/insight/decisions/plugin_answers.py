"""Answers of plugins that cannot be called again, because they may depend on more than the pod and the cluster.

While a cycle runs, a `RecordingGuard` wraps these plugins and records their answers. When the decision is evaluated
again, a `ReplayingGuard` answers instead of them. Answers about nodes are kept by row number.
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
_REJECTION_BYTES = 400
_NAME_BYTES = 100

Key = tuple[str, str, str, bool]
"""Plugin, method, UID of the pod, and whether the call was about a hypothetical state of nodes."""


class Answer(NamedTuple):
    """The answer of a plugin about rows or about the pod, or the exception that it raised."""

    rows: IntArray
    values: IntArray
    rejections: dict[int, Rejection]
    """The meaning of a filter's values other than 0."""
    whole: Any = None
    """An answer that is not about rows."""
    error: BaseException | None = None

    @property
    def nbytes(self) -> int:
        names = len(self.whole.nodes) if isinstance(self.whole, Narrowed) else 0
        reasons = sum(len(reason) for rejection in self.rejections.values() for reason in rejection.reasons)
        texts = _REJECTION_BYTES * len(self.rejections) + reasons + _NAME_BYTES * names
        return _ENTRY_BYTES + self.rows.nbytes + self.values.nbytes + texts


Answers = dict[Key, list[Answer]]
_NO_ROWS: IntArray = np.zeros(0, np.int64)


class RecordingGuard(Guard):
    """Records the answers of the plugins of a profile until they are taken."""

    allows_single_rows = False

    def __init__(self) -> None:
        super().__init__()
        self.recorded: Answers = {}

    def take(self) -> Answers:
        """Return the answers since the previous call."""
        answers, self.recorded = self.recorded, {}
        return answers

    def wrap(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        guarded = super().wrap(function, plugin, method, columns=columns)
        if method not in _ABOUT_PODS + _ABOUT_ROWS:
            return guarded

        def recording(*args: Any) -> Any:
            uid, rows, is_what_if = _subject(method, args)
            answers = self.recorded.setdefault((plugin, method, uid, is_what_if), [])
            try:
                answer = guarded(*args)
            except BaseException as error:
                answers.append(Answer(rows, _NO_ROWS, {}, error=error))
                raise
            answers.append(_recorded(method, rows, answer))
            return answer

        return recording


class ReplayingGuard(Guard):
    """Returns recorded answers instead of calling plugins."""

    allows_single_rows = False

    def __init__(self, answers: Answers, table: NodeTable) -> None:
        super().__init__()
        self._answers = answers
        self._table = table

    def wrap(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        if method == "with_changes":
            # A state is only needed by the plugin itself, which is not called.
            return lambda *_args: None
        if method == "counted_rows":
            return lambda *_args: np.ones(self._table.size, np.bool_)
        if method not in _ABOUT_PODS + _ABOUT_ROWS:
            return super().wrap(function, plugin, method, columns=columns)

        def replayed(*args: Any) -> Any:
            uid, rows, is_what_if = _subject(method, args)
            answers = self._answers.get((plugin, method, uid, is_what_if))
            if not answers:
                raise LookupError("no answer to this call is recorded")
            if answers[-1].error is not None:
                raise answers[-1].error
            return answers[-1].whole if method in _ABOUT_PODS else _joined(method, rows, answers)

        return replayed


def _subject(method: str, args: tuple[Any, ...]) -> tuple[str, IntArray, bool]:
    """Return the pod's UID and the table rows of a call, and whether the call is about a hypothetical state."""
    if method in _ABOUT_PODS:
        return args[0].uid, _NO_ROWS, False
    view, rows = args[2], row_numbers(args[3])
    return args[1].uid, view.source_rows()[rows], not isinstance(view, NodeTable)


def _recorded(method: str, rows: IntArray, answer: Any) -> Answer:
    if method in _ABOUT_PODS:
        # A state is only needed by the plugin itself, which is not called again.
        whole = answer if isinstance(answer, Skip | Rejection) else None
        return Answer(rows, _NO_ROWS, {}, Narrowed(answer.nodes) if isinstance(answer, Narrowed) else whole)
    if answer is None:
        return Answer(rows, np.zeros(len(rows), np.int64), {})
    if not isinstance(answer, Rejections):
        return Answer(rows, np.array(answer, np.int64), {})
    kinds = np.array(answer.kinds, np.int64)
    rejections = {kind: answer.words(kind) for kind in np.unique(kinds).tolist() if kind}
    return Answer(rows, kinds, rejections, answer.failed)


def _joined(method: str, rows: IntArray, answers: list[Answer]) -> Any:
    """Return the last answer about each row. Rows without an answer had been rejected before."""
    size = 1 + max(int(part.max(initial=0)) for part in (rows, *(answer.rows for answer in answers)))
    values: IntArray = np.zeros(size, np.int64)
    rejections: list[Rejection] = []
    for answer in answers:
        numbered = answer.values.copy()
        for kind, rejection in answer.rejections.items():
            rejections.append(rejection)
            numbered[answer.values == kind] = len(rejections)
        if len(numbered):
            values[answer.rows] = numbered
    if method != "filter_rows":
        return values[rows]
    failed = next((answer.whole for answer in reversed(answers) if answer.whole is not None), None)
    return Rejections(values[rows], lambda kind: rejections[kind - 1], failed)
