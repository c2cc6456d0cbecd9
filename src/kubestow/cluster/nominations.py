"""Which pods were nominated to which rows at some moment, for those who ask about it later.

A log has every nomination with the moments from and until which it stood. Whoever may want to know keeps the log and
the moment, which costs the same however many pods are nominated. Once most nominations of a log are over, the others go
on in a new one, so that what nobody keeps is not remembered.
"""

from collections.abc import Iterator
from math import inf

import msgspec

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo

_POD_BYTES = 3_000
_FEW = 64


class Nomination(msgspec.Struct, eq=False, gc=False):
    """Of a pod to the node of a row."""

    row: int
    node: str
    pod: PodInfo
    since: int
    until: float = inf


class NominationLog:
    """Nominations in the order they were made."""

    __slots__ = ("_nominations", "_over", "counted", "holders", "moment")

    def __init__(self) -> None:
        self._nominations: list[Nomination] = []
        self._over = 0
        self.moment = 0
        self.counted = self.holders = 0
        """What whoever counts bytes has counted, and for how many who hold it."""

    @property
    def bytes(self) -> int:
        """What it takes, about."""
        return _POD_BYTES * len(self._nominations)

    @property
    def is_mostly_over(self) -> bool:
        return self._over > _FEW + len(self._nominations) // 2

    def begin(self, row: int, node: str, pod: PodInfo) -> Nomination:
        self.moment += 1
        nomination = Nomination(row, node, pod, self.moment)
        self._nominations.append(nomination)
        return nomination

    def end(self, nomination: Nomination) -> None:
        self.moment += 1
        nomination.until = self.moment
        self._over += 1

    def at(self, moment: int) -> Iterator[Nomination]:
        """Those that stood then."""
        return (one for one in self._nominations if one.since <= moment < one.until)


class NominatedThen(msgspec.Struct, frozen=True):
    """The pods that were nominated to some rows beside a pod, and at least as important."""

    log: NominationLog
    moment: int
    rows: IntArray
    pod: PodInfo

    def pods(self) -> list[tuple[str, PodInfo]]:
        """With their nodes, in the order of the rows."""
        place = {row: number for number, row in enumerate(self.rows.tolist())}
        least, own = self.pod.priority, self.pod.uid
        found = [
            one
            for one in self.log.at(self.moment)
            if one.row in place and one.pod.priority >= least and one.pod.uid != own
        ]
        return [(one.node, one.pod) for one in sorted(found, key=lambda one: place[one.row])]
