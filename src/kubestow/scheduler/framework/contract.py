"""The valid results of each method of a plugin.

The caller checks every result of out-of-tree plugins against this table; a result of another type, shape, dtype or
range is a failure of the plugin. `None` is checked without a call: a method either may return it or must not. The
results of built-in plugins are checked in the same way in tests (`Hook.checks_trusted`), but not in production, where
the check would cost more than some of these plugins do.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import isfinite
from typing import Any

import msgspec
import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray, largest, row_count
from kubestow.scheduler.cluster.events import Registration
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.placements import GroupVictims, Placement
from kubestow.scheduler.framework.results import (
    MAX_SCORE,
    SKIP,
    Candidates,
    Code,
    Narrowed,
    PostFilterResult,
    Rejection,
    Rejections,
    Skip,
    Wait,
)

Args = tuple[Any, ...]
Check = Callable[[Any, Args], None]
"""Raises WrongAnswerError, which describes the expected result, unless the result of a call is valid."""

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)
_INTEGERS = (int, np.integer)
_TRUTHS = (bool, np.bool_)
_REJECTING = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING, Code.ERROR))


class WrongAnswerError(TypeError):
    """A method returned an invalid result; the message continues after the name of the method."""


def _expected(what: str, answer: Any) -> WrongAnswerError:
    return WrongAnswerError(f"must return {what}, not {type(answer).__name__}")


def rejection(answer: Any, _args: Args) -> None:
    """Check that a result is a Rejection."""
    if not isinstance(answer, Rejection):
        raise _expected("a Rejection or None", answer)
    _well_formed(answer)


def _well_formed(answer: Any) -> None:
    reasons = answer.reasons
    if not isinstance(reasons, tuple) or not _are_all(str, reasons):
        raise WrongAnswerError(f"must return a Rejection whose reasons are a tuple of str, not {reasons!r:.100}")
    if answer.code not in _REJECTING:
        raise WrongAnswerError(f"must return a Rejection whose code rejects, not {answer.code!r:.100}")


def _are_all(kind: type, parts: Iterable[Any]) -> bool:
    for part in parts:  # noqa: SIM110 - a generator costs more than the loop over a few items
        if not isinstance(part, kind):
            return False
    return True


def _pre_filter(answer: Any, _args: Args) -> None:
    if answer is SKIP:
        return
    kind = type(answer)
    if kind is Rejection:
        _well_formed(answer)
    elif kind is Narrowed:
        nodes = answer.nodes
        if not isinstance(nodes, frozenset) or not _are_all(str, nodes):
            raise WrongAnswerError(f"must return Narrowed with a frozenset of node names, not {nodes!r:.100}")


def _filter_rows(answer: Any, args: Args) -> None:
    if not isinstance(answer, Rejections):
        raise _expected("Rejections or None", answer)
    _column(answer.kinds, _INT64, row_count(args[3]), "Rejections whose kinds are")


def _passing_rows(answer: Any, args: Args) -> None:
    _column(answer, _BOOL, row_count(args[3]))


def _counted_rows(answer: Any, _args: Args) -> None:
    _column(answer, _BOOL, None)


def _score_rows(answer: Any, args: Args) -> None:
    _column(answer, _INT64, row_count(args[3]))


def _normalize(answer: Any, args: Args) -> None:
    _column(answer, _INT64, len(args[3]))
    check_scores(answer, args[2], args[3])


def _column(answer: Any, dtype: np.dtype[Any], count: int | None, what: str = "") -> None:
    if not isinstance(answer, np.ndarray) or (answer.dtype is not dtype and answer.dtype != dtype):
        found = f"an array of {answer.dtype}" if isinstance(answer, np.ndarray) else type(answer).__name__
        raise WrongAnswerError(f"must return {what + ' ' if what else ''}an array of {dtype}, not {found}")
    if answer.ndim != 1 or (count is not None and len(answer) != count):
        raise WrongAnswerError(f"must return a value for each of {count} rows, not an array of shape {answer.shape}")


def check_scores(scores: IntArray, view: NodeView, rows: IntArray) -> None:
    """Raise WrongAnswerError if the score of a row is not between 0 and MAX_SCORE."""
    # Viewed as unsigned numbers, negative ones are larger than any score.
    if len(scores) and largest(scores.view(np.uint64)) > MAX_SCORE:
        position = int(np.flatnonzero((scores > MAX_SCORE) | (scores < 0))[0])
        name = view.names[int(rows[position])]
        score = int(scores[position])
        raise WrongAnswerError(f"must score from 0 to {MAX_SCORE}: score {score} of node {name} is out of range")


def _row_score(answer: Any, _args: Args) -> None:
    if not isinstance(answer, _INTEGERS):
        raise _expected("an int or None", answer)
    if not 0 <= answer <= MAX_SCORE:
        raise WrongAnswerError(f"must score from 0 to {MAX_SCORE}, not {int(answer)}")


def _post_filter(answer: Any, _args: Args) -> None:
    if isinstance(answer, Candidates):
        return
    if not isinstance(answer, PostFilterResult):
        raise _expected("a PostFilterResult", answer)
    parts: Any = answer
    if not isinstance(parts.code, Code) or not isinstance(parts.message, str):
        raise WrongAnswerError(f"must return a Code and a message, not {parts.code!r:.100} and {parts.message!r:.100}")
    if not isinstance(parts.nominated_node, str | None):
        raise TypeError(
            f"the nominated node of a PostFilterResult must be a name or None, not {parts.nominated_node!r}"
        )
    if not _are_all(PodInfo, parts.victims) or not _are_all(PodInfo, parts.to_unnominate):
        raise WrongAnswerError("must return victims of type PodInfo, as they were passed to it")


def _permit(answer: Any, _args: Args) -> None:
    if isinstance(answer, Wait):
        seconds: Any = answer.seconds
        if not isinstance(seconds, int | float) or not isfinite(seconds) or seconds < 0:
            raise WrongAnswerError(f"must return Wait with a non-negative number of seconds, not {seconds!r:.100}")
    elif isinstance(answer, Rejection):
        _well_formed(answer)
    else:
        raise _expected("None, a Rejection or Wait", answer)


def _placements(answer: Any, _args: Args) -> None:
    if not isinstance(answer, Sequence) or not all(isinstance(one, Placement) for one in answer):
        raise _expected("a list of Placements", answer)
    for one in answer:
        _column(one.rows, _INT64, None, f"Placements whose rows are, as those of {one.name!r:.100},")


def _placement_scores(answer: Any, args: Args) -> None:
    if not isinstance(answer, Sequence | np.ndarray) or not all(isinstance(one, int | np.integer) for one in answer):
        raise _expected("a list of ints", answer)
    if len(answer) != len(args[1]):
        raise WrongAnswerError(f"must score each of {len(args[1])} placements, not {len(answer)}")
    for one, placed in zip(answer, args[1], strict=True):
        if not 0 <= one <= MAX_SCORE:
            name = placed.placement.name
            raise WrongAnswerError(f"must score from 0 to {MAX_SCORE}: score {one} of placement {name} is out of range")


def _group_victims(answer: Any, _args: Args) -> None:
    if isinstance(answer, Rejection):
        _well_formed(answer)
    elif not isinstance(answer, GroupVictims):
        raise _expected("GroupVictims or a Rejection", answer)


def _needed(answer: Any, _args: Args) -> None:
    if not isinstance(answer, _TRUTHS):
        raise _expected("True or False", answer)


def _bind(answer: Any, _args: Args) -> None:
    if not isinstance(answer, Skip):
        raise _expected("None or SKIP", answer)


def _nothing(answer: Any, _args: Args) -> None:
    raise _expected("nothing", answer)


def _hashable(answer: Any, _args: Args) -> None:
    if not isinstance(answer, Hashable):
        raise _expected("a hashable value or None", answer)
    hash(answer)


def _requeue_on(answer: Any, _args: Args) -> None:
    if not isinstance(answer, Sequence) or not all(isinstance(one, Registration) for one in answer):
        raise _expected("a list of results of `on`", answer)


class Method(msgspec.Struct, frozen=True):
    """The contract of one method."""

    point: str
    """The name of the extension point in messages and metrics."""
    check: Check | None
    """None: only the plugin itself uses the result."""
    must_return: bool = False
    """Whether the result must not be None."""
    is_timed: bool = True
    companions: tuple[str, ...] = ()
    """Optional methods of a plugin that has this method."""


CONTRACT: dict[str, Method] = {
    "pre_enqueue": Method("PreEnqueue", rejection),
    "sort_key": Method("QueueSort", None, is_timed=False),
    "pre_filter": Method("PreFilter", _pre_filter, companions=("with_changes", "counted_rows")),
    "filter_rows": Method(
        "Filter", _filter_rows, companions=("passing_rows", "row_rejection", "join_states", "copies_rows")
    ),
    "copies_rows": Method("copies_rows", _score_rows, must_return=True, is_timed=False),
    "passing_rows": Method("passing_rows", _passing_rows, must_return=True, is_timed=False),
    "row_rejection": Method("Filter", rejection),
    "join_states": Method("join_states", None, is_timed=False),
    "with_changes": Method("with_changes", None, is_timed=False),
    "counted_rows": Method("counted_rows", _counted_rows, must_return=True, is_timed=False),
    "post_filter": Method("PostFilter", _post_filter, must_return=True),
    "pod_group_post_filter": Method("PodGroupPostFilter", _group_victims, must_return=True),
    "pre_score": Method("PreScore", None),
    "score_rows": Method(
        "Score", _score_rows, must_return=True, companions=("normalize", "row_score", "join_score_states")
    ),
    "normalize": Method("normalize", _normalize, must_return=True, is_timed=False),
    "row_score": Method("Score", _row_score),
    "join_score_states": Method("join_score_states", None, is_timed=False),
    "reserve": Method("Reserve", rejection, companions=("unreserve",)),
    "unreserve": Method("unreserve", _nothing, is_timed=False),
    "permit": Method("Permit", _permit, companions=("placement_feasible",)),
    "placement_feasible": Method("PlacementFeasible", _permit),
    "pre_bind": Method("PreBind", rejection, companions=("pre_bind_needed",)),
    "pre_bind_needed": Method("PreBindPreFlight", _needed, must_return=True, is_timed=False),
    "bind": Method("Bind", _bind),
    "post_bind": Method("PostBind", _nothing),
    "generate_placements": Method("PlacementGenerate", _placements, must_return=True),
    "score_placements": Method("PlacementScore", _placement_scores, must_return=True),
    "sign": Method("sign", _hashable, is_timed=False),
    "requeue_on": Method("requeue_on", _requeue_on, must_return=True, is_timed=False),
    "hint": Method("QueueingHint", _needed, must_return=True, is_timed=False),
}
"""Every method of a plugin that is called, by name. A hint is registered by `requeue_on`."""
