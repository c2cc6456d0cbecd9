"""A plugin with all methods, which misbehaves in one method for one kind of pod."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from kubestow.scheduler.cluster.events import Action, Resource, on
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import Code, PostFilterResult, Rejections, unschedulable

TARGET = {"kind": "target"}
"""The labels of the pods that it misbehaves for."""


def raises(_answer: Any, _args: Any) -> Any:
    raise RuntimeError("no luck")


def exits(_answer: Any, _args: Any) -> Any:
    raise SystemExit(3)


def wrong_type(_answer: Any, _args: Any) -> Any:
    return "what you see is what you get"


def blocks(answer: Any, _args: Any) -> Any:
    """Let a second of virtual time pass."""
    asyncio.get_running_loop().nanoseconds += 10**9  # type: ignore[attr-defined]
    return answer


def wrong_length(answer: Any, _args: Any) -> Any:
    if isinstance(answer, Rejections):
        return answer._replace(kinds=np.append(answer.kinds, 0))
    return np.append(answer, answer[:1])


def wrong_dtype(answer: Any, _args: Any) -> Any:
    if isinstance(answer, Rejections):
        return answer._replace(kinds=answer.kinds.astype(np.float32))
    return answer.astype(np.float64)


def not_a_number(answer: Any, _args: Any) -> Any:
    return answer * float("nan")


def out_of_range(answer: Any, _args: Any) -> Any:
    return answer + 1_000


def writes_to_columns(answer: Any, args: Any) -> Any:
    for arg in args:
        if hasattr(arg, "requested"):
            arg.requested[:] = 0
    return answer


def writes_to_rows(answer: Any, args: Any) -> Any:
    for arg in args:
        if isinstance(arg, np.ndarray):
            arg[:] = 0
    return answer


def empties_nodes(answer: Any, args: Any) -> Any:
    for arg in args:
        if hasattr(arg, "requested"):
            arg.pods[0].clear()
    return answer


def relabels_the_pod(answer: Any, args: Any) -> Any:
    for arg in args:
        if hasattr(arg, "labels") and hasattr(arg, "pod"):
            arg.labels["kind"] = "nice"
        elif hasattr(arg, "spec"):
            arg.metadata.labels["kind"] = "nice"
    return answer


def promotes_the_pod(answer: Any, args: Any) -> Any:
    for arg in args:
        if hasattr(arg, "priority") and hasattr(arg, "pod"):
            arg.priority = 10**9
    return answer


ANYWHERE = (raises, exits)
ANSWERS = (wrong_type,)
COLUMNS = (wrong_type, wrong_length, wrong_dtype)
CHANGES_POD = (relabels_the_pod,)
CHANGES_POD_INFO = (relabels_the_pod, promotes_the_pod)
CHANGES_VIEW = (writes_to_columns, empties_nodes)

FAILS_THE_POD: dict[str, tuple[Callable[..., Any], ...]] = {
    "pre_filter": (*ANYWHERE, *CHANGES_POD_INFO),
    "filter_rows": (*ANYWHERE, *COLUMNS, *CHANGES_POD_INFO, *CHANGES_VIEW),
    "passing_rows": (*ANYWHERE, *COLUMNS, *CHANGES_POD_INFO, *CHANGES_VIEW),
    "row_rejection": (*ANYWHERE, *ANSWERS, *CHANGES_VIEW),
    "pre_score": (*ANYWHERE, *CHANGES_POD_INFO, *CHANGES_VIEW),
    "score_rows": (*ANYWHERE, *COLUMNS, not_a_number, *CHANGES_POD_INFO, *CHANGES_VIEW),
    "row_score": (*ANYWHERE, *ANSWERS, not_a_number, out_of_range, *CHANGES_VIEW),
    "normalize": (*ANYWHERE, *COLUMNS, not_a_number, out_of_range, *CHANGES_POD_INFO, *CHANGES_VIEW),
    "reserve": (*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO),
    "permit": (*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO),
    "pre_bind_needed": (*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO),
    "pre_bind": (*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO),
    "bind": (*ANYWHERE, *ANSWERS),
    "sign": (*ANYWHERE, *CHANGES_POD_INFO),
}
"""Results that are a failure of the pod, by method."""


class HostileEvaluator:
    """Rejects nodes with the label `bad`, and scores the others equally.

    It has no method that may change it, so equal pods share its results.
    """

    name = "Hostile"
    reads_pods = PodsRead.SUMS
    method = ""
    misbehave: Callable[..., Any] = raises

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def _act(self, method: str, is_target: bool, answer: Any, *args: Any) -> Any:
        return type(self).misbehave(answer, args) if is_target and method == self.method else answer

    def requeue_on(self) -> list[Any]:
        return [on(Resource.NODE, Action.ADD, self.hint)]

    def hint(self, pod: Any, old: Any, new: Any) -> bool:
        return self._act("hint", pod.metadata.labels == TARGET, True, pod, old, new)  # type: ignore[no-any-return]

    def pre_enqueue(self, pod: Any) -> Any:
        return self._act("pre_enqueue", pod.metadata.labels == TARGET, None, pod)

    def sign(self, pod: Any) -> Any:
        return self._act("sign", pod.labels == TARGET, pod.labels == TARGET, pod)

    def pre_filter(self, pod: Any) -> Any:
        return self._act("pre_filter", pod.labels == TARGET, pod.labels == TARGET, pod)

    def filter_rows(self, state: Any, pod: Any, view: Any, rows: Any) -> Any:
        bad = (view.label_ids("bad")[rows] != 0).astype(np.int64)
        words: Callable[[int], Any] = lambda _: self._act("words", state, unschedulable("node is bad"))  # noqa: E731
        return self._act("filter_rows", state, Rejections(bad, words), pod, view, rows)

    def row_rejection(self, state: Any, view: Any, row: int) -> Any:
        answer = unschedulable("node is bad") if view.label_ids("bad")[row] else None
        return self._act("row_rejection", state, answer, view, row)

    def pre_score(self, pod: Any, view: Any, rows: Any) -> Any:
        return self._act("pre_score", pod.labels == TARGET, pod.labels == TARGET, pod, view, rows)

    def score_rows(self, state: Any, pod: Any, view: Any, rows: Any) -> Any:
        scores = np.full(len(view.pod_count[rows]), 7, np.int64)
        return self._act("score_rows", state, scores, pod, view, rows)

    def row_score(self, state: Any, view: Any, row: int) -> Any:
        return self._act("row_score", state, 7, view, row)


class Hostile(HostileEvaluator):
    """Also has the other methods; delays no pod, changes nothing."""

    def post_filter(self, pod: Any, cycle: Any) -> Any:
        return self._act("post_filter", pod.labels == TARGET, PostFilterResult(Code.UNSCHEDULABLE), pod)

    def reserve(self, state: Any, pod: Any, node: str) -> Any:
        return self._act("reserve", state, None, pod, node)

    def unreserve(self, state: Any, pod: Any, node: str) -> Any:
        return self._act("unreserve", state, None, pod, node)

    def permit(self, state: Any, pod: Any, node: str) -> Any:
        if pod.labels == TARGET and self.method == "unreserve":
            return unschedulable("to be undone")
        return self._act("permit", state, None, pod, node)

    def pre_bind_needed(self, state: Any, pod: Any, node: str) -> Any:
        return self._act("pre_bind_needed", state, True, pod, node)

    async def pre_bind(self, state: Any, pod: Any, node: str) -> Any:
        return self._act("pre_bind", state, None, pod, node)

    async def bind(self, pod: Any, node: str) -> Any:
        self._act("bind", pod.labels == TARGET, None, pod, node)
        if pod.labels == TARGET and self.method == "bind" and type(self).misbehave is wrong_type:
            return "bound, I think"
        return await self._handle.api.bind(pod.pod, node)

    def post_bind(self, state: Any, pod: Any, node: str) -> Any:
        return self._act("post_bind", state, None, pod, node)


class HostileFast(Hostile):
    """Has a faster method for the rows that pass."""

    def passing_rows(self, state: Any, pod: Any, view: Any, rows: Any) -> Any:
        return self._act("passing_rows", state, view.label_ids("bad")[rows] == 0, pod, view, rows)


class HostileNormalizer(Hostile):
    """Normalizes scores, too."""

    def normalize(self, state: Any, pod: Any, view: Any, rows: Any, scores: Any) -> Any:
        return self._act("normalize", state, scores, pod, view, rows)


_BASES: dict[str, type[HostileEvaluator]] = {
    "passing_rows": HostileFast,
    "normalize": HostileNormalizer,
    "row_rejection": HostileEvaluator,
    "row_score": HostileEvaluator,
}


def hostile(method: str, misbehave: Callable[..., Any], **more: Any) -> type[HostileEvaluator]:
    """Return a plugin that misbehaves in one method."""
    base = _BASES.get(method, Hostile)
    return type("Hostile", (base,), {"method": method, "misbehave": staticmethod(misbehave), **more})
