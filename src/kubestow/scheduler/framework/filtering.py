"""Runs the filters of a profile over rows of a view: the cluster's table, or a what-if."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, first_rows, row_numbers
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.caller import Caller, rejection_for
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import FilterError, Rejection, Rejections
from kubestow.scheduler.framework.verdicts import Verdicts

_COMPRESS_BELOW = 0.5
"""If less than this part of the rows still pass, later filters are called for those rows only."""


def run_filters(
    profile: Profile,
    states: dict[str, Any],
    skipped: Collection[str],
    pod: PodInfo,
    view: NodeView,
    rows: IntArray | None,
) -> Verdicts:
    """Run the filters of a profile over rows of a view (None: all live ones), until a filter rejects a row."""
    if profile.checks_all_filters:
        return run_all_filters(profile, states, skipped, pod, view, rows)
    alive: BoolArray | None = None
    if rows is None:
        # Dead rows are rare: evaluate all rows, which needs no copies, and drop the dead ones from the result.
        evaluated: Rows = slice(0, view.size)
        verdicts = Verdicts(first_rows(view.size), profile.filter_names)
        if not are_all_set(view.live[: view.size]):
            alive = view.live[: view.size]
            verdicts.passing &= alive
    else:
        evaluated = rows
        verdicts = Verdicts(rows, profile.filter_names)
    positions: IntArray | None = None
    passing = len(verdicts.rows) if alive is None else int(np.count_nonzero(alive))
    for number, hook in enumerate(profile.filter):
        if hook.name in skipped:
            continue
        if not passing:
            break
        if hook.costly_rows or passing < _COMPRESS_BELOW * len(verdicts.rows):
            positions = np.flatnonzero(verdicts.passing)
            evaluated = verdicts.rows[positions]
            passing = len(positions)
        answer = profile.caller.call(hook, states.get(hook.name), pod, view, evaluated, rows=passing)
        if answer is not None:
            passing -= verdicts.add(number, answer, positions)
    return verdicts if alive is None else verdicts.only(alive)


def run_all_filters(
    profile: Profile,
    states: dict[str, Any],
    skipped: Collection[str],
    pod: PodInfo,
    view: NodeView,
    rows: IntArray | None,
) -> Verdicts:
    """Run every filter for every row: a rejection then has the reasons of all filters that reject the row."""
    evaluated = np.flatnonzero(view.live[: view.size]) if rows is None else rows
    verdicts = Verdicts(evaluated, profile.filter_names)
    answers: list[tuple[str, Rejections]] = []
    for hook in profile.filter:
        if hook.name not in skipped:
            answer = profile.caller.call(hook, states.get(hook.name), pod, view, evaluated, rows=len(evaluated))
            if answer is not None:
                answers.append((hook.name, answer))
                if answer.failed is not None:
                    verdicts.failed = answer.failed._replace(plugin=hook.name)
    if answers:
        distinct, which = np.unique(np.stack([answer.kinds for _, answer in answers]), axis=1, return_inverse=True)
        for number, kinds in enumerate(distinct.T.tolist()):
            found = zip(answers, kinds, strict=True)
            rejections = [rejection_for(name, answer, kind) for (name, answer), kind in found if kind]
            if rejections:
                verdicts.override(np.flatnonzero(which == number), _merged(rejections))
    return verdicts


def _merged(rejections: Sequence[Rejection]) -> Rejection:
    """Return several rejections of one node as one. It is unresolvable if one of them is."""
    return Rejection(
        tuple(reason for rejection in rejections for reason in rejection.reasons),
        max(rejection.code for rejection in rejections),
        rejections[0].plugin,
        tuple(rejection.plugin for rejection in rejections[1:]),
    )


def refuse(
    passing: BoolArray, caller: Caller, hook: Hook, state: Any, pod: PodInfo, view: NodeView, rows: Rows
) -> None:
    """Remove the rows that a filter rejects from `passing`, without reasons."""
    if hook.costly_rows:
        positions: Rows = slice(None) if are_all_set(passing) else passing.nonzero()[0]
        some = row_numbers(rows)[positions]
        if len(some):
            answer = caller.call(hook, state, pod, view, some, rows=len(some))
            if answer is not None:
                passing[positions] = _passing(hook, answer)
    elif state is not None and hook.passing_rows is not None and not caller.timing:
        passing &= caller.call(hook.passing_rows, state, pod, view, rows, rows=len(passing))
    else:
        answer = caller.call(hook, state, pod, view, rows, rows=len(passing))
        if answer is not None:
            passing &= _passing(hook, answer)


def _passing(hook: Hook, answer: Rejections) -> BoolArray:
    if answer.failed is not None:
        raise FilterError(hook.name, answer.failed.message)
    passing: BoolArray = answer.kinds == 0
    return passing
