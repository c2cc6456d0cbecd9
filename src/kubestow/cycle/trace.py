"""What a cycle leaves for those who explain it: references to what it has found out anyway.

A trace is to be read before the next cycle begins: the evaluation, and what hangs on it, goes on changing. What may be
kept for longer is in `layers` and in `scores`. Where layers say everything, a cycle leaves no more than that.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct

from kubestow.cluster.arrays import IntArray
from kubestow.cycle.journal import Layer, Layers
from kubestow.framework.placements import Placement
from kubestow.framework.results import PostFilterResult, Rejection
from kubestow.framework.verdicts import Told, Verdicts

if TYPE_CHECKING:
    from kubestow.extenders.asking import Asked


class Scored(NamedTuple):
    """What one plugin said of the rows that were scored."""

    plugin: str
    weight: int
    raw: IntArray | None
    """None: a layer has it."""
    weighted: IntArray | None
    """Normalized and weighted; None: nothing was normalized."""

    @property
    def counted(self) -> IntArray:
        """What counts."""
        if self.weighted is not None:
            return self.weighted
        assert self.raw is not None
        return self.raw * np.int64(self.weight)


class Trace(Struct, gc=False):
    """One cycle. Nothing that it holds leads back to it."""

    evaluation: Any
    """Of `cycle.evaluation`."""
    order: IntArray | None = None
    """The rows, in the order in which they were searched."""
    searched: int = 0
    """How many of them were looked at."""
    rows: IntArray | None = None
    """Those that passed, before extenders were asked; None, though rows were searched: the layers say which."""
    layers: Layers | None = None
    """What pods like this one share."""
    change: int = 0
    """How far changes had come in the topmost journal."""
    refused: Verdicts | Told | None = None
    """Why others did not, as far as no layer says it."""
    left: IntArray | None = None
    """What extenders left of those that passed."""
    failed: Mapping[int, Rejection] | None = None
    """Why they left out others."""
    is_scored: bool = False
    """Whether those that were left were scored."""
    took_nominated: bool = False
    """Whether the nominated node was taken, without a look at others."""
    extended: IntArray | None = None
    """What extenders added to the scores."""
    post_filter: PostFilterResult | None = None
    scores: tuple[Scored, ...] = ()
    calls: "tuple[Asked, ...]" = ()
    group: str = ""
    """The pod group that the pod was tried with."""
    placement: Placement | None = None
    """Among which nodes; None: all."""

    @property
    def moments(self) -> tuple[Layer, ...]:
        """What pods like this one share, as it was then; lowest first."""
        return () if self.layers is None else self.layers.at(self.change)


class Searched(Struct, gc=False):
    """Rows that were searched, not all of which passed, or of which journals do not say all scores."""

    order: IntArray
    """The rows, in the order in which they were searched."""
    count: int
    """How many of them were looked at."""
    feasible: int
    """How many passed."""
    scores: tuple[Scored, ...] = ()
    """Those that no journal has, of the rows that passed."""

    @property
    def nbytes(self) -> int:
        """What the scores take."""
        parts = [part for scored in self.scores for part in (scored.raw, scored.weighted) if part is not None]
        return sum([part.nbytes for part in parts])


class Alike(Struct, gc=False):
    """A cycle of which the layers say all but some scores: which rows passed, and why others did not."""

    layers: Layers
    change: int
    searched: IntArray | Searched
    """The rows; if it is nothing but rows, all of them passed, and the layers say everything."""

    def traced(self, evaluation: Any = None) -> Trace:
        """The same at length."""
        trace = traced(self.searched, self.layers, self.change)
        trace.evaluation, trace.group, trace.placement = evaluation, self.layers.group, self.layers.placement
        return trace


def counts(searched: IntArray | Searched) -> tuple[int, int]:
    """How many rows were looked at, and how many passed."""
    if isinstance(searched, Searched):
        return searched.count, searched.feasible
    return len(searched), len(searched)


def traced(searched: IntArray | Searched, layers: Layers | None, change: int) -> Trace:
    """A cycle at length."""
    if isinstance(searched, Searched):
        order, count = searched.order, searched.count
        rows = order[:count] if searched.feasible == count else None
        return Trace(None, order, count, rows, layers, change, is_scored=True, scores=searched.scores)
    return Trace(None, searched, len(searched), searched, layers, change, is_scored=True)
