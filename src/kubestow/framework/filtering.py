"""Running the filters of a profile over rows of a view: the cluster's table, or a what-if."""

from collections.abc import Collection
from typing import Any

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, row_numbers
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.view import NodeView
from kubestow.framework.caller import Caller
from kubestow.framework.hook import Hook
from kubestow.framework.profile import Profile
from kubestow.framework.verdicts import Verdicts

_COMPRESS_BELOW = 0.5
"""When fewer than this part of the rows still pass, later filters look at those rows only."""


def run_filters(
    profile: Profile,
    states: dict[str, Any],
    skipped: Collection[str],
    pod: PodInfo,
    view: NodeView,
    rows: IntArray | None,
) -> Verdicts:
    """Run the filters of a profile over rows of a view (None: all live ones), each row until somebody refuses it."""
    alive: BoolArray | None = None
    if rows is None:
        # Dead rows are rare: judge everything, which needs no copies, and leave them out of the result.
        judged: Rows = slice(0, view.size)
        verdicts = Verdicts(np.arange(view.size), profile.filter_names)
        if not view.live[: view.size].all():
            alive = view.live[: view.size]
            verdicts.passing &= alive
    else:
        judged = rows
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
            judged = verdicts.rows[positions]
            passing = len(positions)
        answer = profile.caller.call(hook, states.get(hook.name), pod, view, judged, rows=passing)
        if answer is not None:
            passing -= verdicts.add(number, answer, positions)
    return verdicts if alive is None else verdicts.only(alive)


def refuse(
    passing: BoolArray, caller: Caller, hook: Hook, state: Any, pod: PodInfo, view: NodeView, rows: Rows
) -> None:
    """Take from `passing` the rows that a filter refuses, whatever its reasons."""
    if hook.costly_rows:
        positions = np.flatnonzero(passing)
        if len(positions):
            answer = caller.call(hook, state, pod, view, row_numbers(rows)[positions], rows=len(positions))
            if answer is not None:
                passing[positions] = answer.kinds == 0
    elif state is not None and hook.passing_rows is not None and not caller.timing:
        passing &= caller.call(hook.passing_rows, state, pod, view, rows, rows=len(passing))
    else:
        answer = caller.call(hook, state, pod, view, rows, rows=len(passing))
        if answer is not None:
            passing &= answer.kinds == 0
