"""The moments of the last while: the state now, the state at any of them, and how figures went.

The state before the oldest moment is kept, and the moments after it; when there are too many, the oldest becomes a part
of that state. How things were at a time is found by applying moments from there on, or from where somebody looked last.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from kubestow.web.moments import Figures, Moment, State, Usage

RING_BYTES = 64 * 1024 * 1024
MOST_POINTS = 2_000


class History:
    """A ring of moments, of about so many bytes."""

    def __init__(self, limit: int = RING_BYTES) -> None:
        self._limit = limit
        self._base = State()
        self.now = State()
        """Whoever asks for it must not change it."""
        self._moments: list[Moment] = []
        self._times: list[float] = []
        self._bytes = 0
        self._looked: tuple[int, State] | None = None

    def add(self, moment: Moment) -> None:
        """Go on."""
        if not self._moments:
            self._base.moment = moment.number - 1
        self.now.apply(moment)
        self._moments.append(moment)
        self._times.append(moment.time)
        self._bytes += moment.size
        if self._bytes > self._limit:
            self._drop()

    def _drop(self) -> None:
        """Make room: an eighth at once, since what is left has to move up."""
        count = 0
        while self._bytes > self._limit * 7 // 8 and count < len(self._moments) - 1:
            self._base.apply(self._moments[count])
            self._bytes -= self._moments[count].size
            count += 1
        del self._moments[:count], self._times[:count]
        self._looked = None

    @property
    def begin(self) -> float:
        """The earliest time that is known."""
        return self._times[0] if self._times else 0.0

    @property
    def end(self) -> float:
        """The latest."""
        return self._times[-1] if self._times else 0.0

    def at(self, time: float) -> State | None:
        """The state then, not to be changed; None if that is too long ago."""
        count = bisect_right(self._times, time)
        if count == len(self._moments):
            return self.now
        if not count:
            return None
        if self._looked is None or self._looked[0] > count:
            self._looked = (0, self._base.copy())
        done, state = self._looked
        for moment in self._moments[done:count]:
            state.apply(moment)
        self._looked = (count, state)
        return state

    def since(self, number: int) -> Moment | None:
        """All that has changed after a moment, as one; None if that is too long ago, or was never."""
        now = self.now
        if not self._base.moment <= number <= now.moment:
            return None
        later = self._moments[bisect_right(self._moments, number, key=lambda moment: moment.number) :]
        if len(later) == 1:
            return later[0]
        waiting = {pod.uid for moment in later for pod in moment.waiting}
        left = {uid for moment in later for uid in moment.left}
        at = sorted({position for moment in later if moment.usage is not None for position in moment.usage.at})
        laid_out = any(moment.layout is not None for moment in later)
        columns = {name: column[at].tolist() for name, column in now.requested.items()}
        return Moment(
            now.moment,
            now.time,
            now.figures,
            now.layout if laid_out else None,
            None if laid_out or not at else Usage(at, now.pods[at].tolist(), columns),
            waiting=[now.waiting[uid] for uid in waiting if uid in now.waiting],
            left=[uid for uid in left if uid not in now.waiting],
            decision=now.decision,
        )

    def points(self, begin: float, end: float, most: int) -> dict[str, Any]:
        """Figures over time, in columns; neighbours are put together to be no more than so many."""
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
    """Those of neighbours: sums of what is counted, the last of what stands; of high percentiles the highest."""
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
