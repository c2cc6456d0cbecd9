"""The history of the page: recent moments, and the state at each of them.

The history of the cluster has the changes of nodes: the cluster at a moment is a copy that is moved to the revision of
that moment (see `kubestow.scheduler.cluster.past`). The queue at a moment is the queue before the oldest moment that is
kept, with the changes of the moments since then applied.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kubestow.insight.page.moments import Figures, Moment, WaitingPod
from kubestow.scheduler.cluster.history import History
from kubestow.scheduler.cluster.past import Nominations, Past
from kubestow.scheduler.cluster.state import Cluster

RING_BYTES = 64 * 1024 * 1024
MOST_POINTS = 2_000


class State:
    """The state of cluster and queue at one moment."""

    def __init__(self, cluster: Cluster, last: Moment, waiting: dict[str, WaitingPod]) -> None:
        self.cluster = cluster
        self.last = last
        """The moment itself."""
        self.waiting = waiting
        """The queue, by UID."""

    def apply(self, moment: Moment) -> None:
        """Apply the queue changes of the next moment. The cluster stays unchanged."""
        self.last = moment
        for uid in moment.left:
            self.waiting.pop(uid, None)
        for waiting in moment.waiting:
            self.waiting[waiting.uid] = waiting


class PageHistory:
    """A ring of moments, and the state now and at each of them."""

    def __init__(self, cluster: Cluster, nominator: Nominations, changes: History, limit: int = RING_BYTES) -> None:
        """`changes` is the history of the cluster and its nominations; `limit` is the size of moments in bytes."""
        self._nominator = nominator
        self._changes = changes
        self._limit = limit
        self._base, self.now = (State(cluster, Moment(0, 0.0, Figures(0.0)), {}) for _ in range(2))
        """The states before the oldest moment and at the last one. Callers must not modify them."""
        self._moments: list[Moment] = []
        self._bytes = 0
        self._shown: tuple[int, State] | None = None
        """The state that was requested last, with the number of moments applied to it."""
        self._past: Past[Nominations] | None = None

    def add(self, moment: Moment) -> None:
        """Add the next moment."""
        self.now.apply(moment)
        self._moments.append(moment)
        self._bytes += moment.size
        if self._bytes > self._limit:
            self._drop()
        if self._past is not None and self._past.revision < self._changes.first:
            # The copy cannot be moved any more, so free its memory.
            self._past = self._shown = None

    def _drop(self) -> None:
        """Drop the oldest eighth of the moments at once, because each call copies the list of the others."""
        count = 0
        while self._bytes > self._limit * 7 // 8 and count < len(self._moments) - 1:
            self._base.apply(self._moments[count])
            self._bytes -= self._moments[count].size
            count += 1
        del self._moments[:count]
        self._shown = None

    def _unreachable(self) -> int:
        """Return the number of moments that are older than the history of the cluster."""
        return bisect_left(self._moments, self._changes.first, key=lambda moment: moment.revision)

    @property
    def begin(self) -> float:
        """The earliest time that can be shown."""
        count = self._unreachable()
        return self._moments[count].time if count < len(self._moments) else self.end

    @property
    def end(self) -> float:
        """The time of the last moment."""
        return self.now.last.time

    def at(self, time: float) -> State | None:
        """Return the state at a time, which is valid until the next call; None if that is too long ago."""
        count = bisect_right(self._moments, time, key=lambda moment: moment.time)
        if count == len(self._moments):
            return self.now
        if count <= self._unreachable():
            return None
        if self._shown is None or self._shown[0] > count:
            base = self._base
            self._shown = 0, State(base.cluster, base.last, base.waiting.copy())
        done, state = self._shown
        for moment in self._moments[done:count]:
            state.apply(moment)
        self._shown = count, state
        if self._past is None:
            self._past = Past(self.now.cluster, self._nominator, self._changes)
        self._past.go_to(state.last.revision)
        state.cluster = self._past.cluster
        return state

    def since(self, number: int) -> tuple[Moment, Moment] | None:
        """Return a moment, and all changes since as one moment; None if it is too long ago or does not exist."""
        if not self._moments or not self._moments[0].number - 1 <= number <= self.now.last.number:
            return None
        index = bisect_right(self._moments, number, key=lambda moment: moment.number)
        later, waiting = self._moments[index:], self.now.waiting
        changed = dict.fromkeys(pod.uid for moment in later for pod in moment.waiting)
        left = dict.fromkeys(uid for moment in later for uid in moment.left)
        missed = replace(
            self.now.last,
            waiting=[waiting[uid] for uid in changed if uid in waiting],
            left=[uid for uid in left if uid not in waiting],
        )
        return self._moments[index - 1] if index else self._base.last, missed

    def points(self, begin: float, end: float, most: int) -> dict[str, Any]:
        """Return at most `most` points of figures in columns, from combined neighbours; some may be before `begin`."""
        chosen = [moment for moment in self._moments if begin <= moment.time <= end]
        size = -(-len(chosen) // max(1, min(most, MOST_POINTS)))
        groups = [chosen[start : start + size] for start in range(0, len(chosen), size or 1)]
        figures = [together([moment.figures for moment in group]) for group in groups]
        columns: dict[str, Any] = {"from": self.begin, "to": self.end, "time": [group[-1].time for group in groups]}
        for name in ("seconds", "bound", "attempts", "preemptions", "victims", "nodes", "pods"):
            columns[name] = [getattr(one, name) for one in figures]
        for name in ("pending", "cycle", "wait", "plugins", "requested"):
            parts: list[dict[str, float | None]] = [getattr(one, name) for one in figures]
            keys = dict.fromkeys(key for part in parts for key in part)
            absent = None if name in ("cycle", "wait") else 0
            columns[name] = {key: [part.get(key, absent) for part in parts] for key in keys}
        return columns


def together(figures: Sequence[Figures]) -> Figures:
    """Combine the figures of neighbours: the sum of counts, the last total, the highest of high percentiles."""
    last = figures[-1]
    if len(figures) == 1:
        return last
    plugins: dict[str, float] = {}
    for one in figures:
        for name, seconds in one.plugins.items():
            plugins[name] = round(plugins.get(name, 0.0) + seconds, 6)
    return Figures(
        round(sum(one.seconds for one in figures), 3),
        sum(one.bound for one in figures),
        sum(one.attempts for one in figures),
        sum(one.preemptions for one in figures),
        sum(one.victims for one in figures),
        last.nodes,
        last.pods,
        last.pending,
        _percentiles([one.cycle for one in figures]),
        _percentiles([one.wait for one in figures]),
        plugins,
        last.requested,
    )


def _percentiles(parts: Sequence[dict[str, float | None]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        values = sorted(value for part in parts if (value := part.get(key)) is not None)
        found[key] = None if not values else values[len(values) // 2] if key == "p50" else values[-1]
    return found
