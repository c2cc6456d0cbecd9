"""Answers of plugins that cannot be called again, because they may depend on more than the pod and the cluster.

While a cycle runs, a `RecordingGuard` wraps these plugins and records their answers. When the decision is evaluated
again, a `ReplayingGuard` answers instead of them. Answers about nodes are kept by row number. A pod that shares results
of equal pods has the answers to these as well: those about pods with the same signature, the latest about each row.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
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
_SIGNED_PODS = 10_000
_SIGNATURES = 256
_UNMERGED = 16
"""Number of answers to the same call that are kept apart; merging copies the rows of all."""

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
        self._recorded: Answers = {}
        self._signed: dict[str, dict[str, Hashable]] = {}
        """The signatures of the pods that are not decided yet, by UID and plugin."""
        self._shared: dict[tuple[str, Hashable], dict[str, list[Answer]]] = {}
        """Answers about pods with a signature, by plugin, signature and method."""

    def has_answers(self, uid: str) -> bool:
        """Return whether there are answers that a decision about a pod may depend on."""
        return bool(self._recorded) or uid in self._signed

    def take(self, uid: str | None = None) -> tuple[Answers, int]:
        """Return the answers since the previous call, with those that a pod shares (None: all pods); and new bytes."""
        answers, self._recorded = self._recorded, {}
        size = sum(answer.nbytes for found in answers.values() for answer in found)
        for (plugin, method, of, is_what_if), found in answers.items():
            signature = self._signed.get(of, {}).get(plugin)
            if signature is not None and not is_what_if:
                if len(self._shared) >= _SIGNATURES:
                    del self._shared[next(iter(self._shared))]
                by_method = self._shared.setdefault((plugin, signature), {})
                shared = by_method[method] = [*by_method.get(method, ()), *found]
                if len(shared) > _UNMERGED:
                    by_method[method] = [shared[-1] if method in _ABOUT_PODS else _merged(shared)]
                    size += by_method[method][0].nbytes
        for of in tuple(self._signed) if uid is None else (uid,):
            for plugin, signature in self._signed.pop(of, {}).items():
                for method, shared in self._shared.get((plugin, signature), {}).items():
                    answers[plugin, method, of, False] = shared
        return answers, size

    def wrap(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        guarded = super().wrap(function, plugin, method, columns=columns)
        if method == "sign":
            return self._noting(guarded, plugin)
        if method not in _ABOUT_PODS + _ABOUT_ROWS:
            return guarded

        def recording(*args: Any) -> Any:
            uid, rows, is_what_if = _subject(method, args)
            answers = self._recorded.setdefault((plugin, method, uid, is_what_if), [])
            try:
                answer = guarded(*args)
            except BaseException as error:
                answers.append(Answer(rows, _NO_ROWS, {}, error=error))
                raise
            answers.append(_recorded(method, rows, answer))
            return answer

        return recording

    def _noting(self, sign: Callable[..., Any], plugin: str) -> Callable[..., Any]:
        """Return `sign` of a plugin, noting its results."""

        def noting(pod: Any) -> Any:
            signature = sign(pod)
            # The caller reports signatures that cannot be hashed.
            with suppress(TypeError):
                hash(signature)
                if len(self._signed) >= _SIGNED_PODS:
                    self._signed.clear()
                if signature is not None:
                    self._signed.setdefault(pod.uid, {})[plugin] = signature
            return signature

        return noting


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
    values, found = _by_row(rows, answers)
    if method != "filter_rows":
        return values[rows]
    failed = next((answer.whole for answer in reversed(answers) if answer.whole is not None), None)
    return Rejections(values[rows], lambda kind: found[kind - 1], failed)


def _merged(answers: list[Answer]) -> Answer:
    """Return the last answer about each row as one answer, or the last one if it is an exception."""
    last = answers[-1]
    if last.error is not None:
        return last
    answers = [answer for answer in answers if answer.error is None]
    rows = np.unique(np.concatenate([answer.rows for answer in answers]))
    values, found = _by_row(rows, answers)
    values = values[rows]
    kept = {kind: rejection for kind, rejection in enumerate(found, 1) if kind in values}
    return Answer(rows, values, kept, last.whole)


def _by_row(rows: IntArray, answers: list[Answer]) -> tuple[IntArray, list[Rejection]]:
    """Return the last value about each row of the table, where those of filters are numbers of rejections, from 1."""
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
    return values, rejections
