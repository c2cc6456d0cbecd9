"""A copy of the cluster that can be moved to any revision that the history contains.

The changes between two revisions are combined first: of several changes of an object only the last value counts. The
nodes and pods concerned are removed from their rows, and then added to the rows that they had at that revision. Rows
have the same numbers as in the cluster itself; there may be more of them than there were.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

from kubestow.api.devices import AllocationResult
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.history import (
    IMAGE,
    MEMBER,
    NODE,
    NOMINATION,
    PENDING_ALLOCATION,
    POD,
    UNREADABLE,
    History,
)
from kubestow.scheduler.cluster.state import Cluster

Values = dict[Hashable, Any]
"""New values by key."""


class Nominations(Protocol):
    """Pods that are nominated to nodes; `queue.nominator.Nominator` is one."""

    def copy(self) -> Self:
        """Return an independent copy without history."""
        ...

    def replace(self, nominations: Mapping[str, Any]) -> None:
        """Replace some nominations, by UID, by what they are at another revision; None stands for no nomination."""
        ...


AnyNominations = TypeVar("AnyNominations", bound=Nominations)


class Past(Generic[AnyNominations]):
    """The cluster and its nominations at some revision.

    It is created in the thread of the cluster, and may be used in another one unless it has to be copied again.
    """

    def __init__(self, cluster: Cluster, nominator: AnyNominations, history: History) -> None:
        """Copy a cluster and its nominations as they are now; `history` records their changes."""
        self._copied = cluster, nominator
        self._history = history
        self._copy()

    def _copy(self) -> None:
        cluster, nominator = self._copied
        self.cluster = cluster.copy()
        self.nominator = nominator.copy()
        self.revision = self._history.revision

    def go_to(self, revision: int) -> None:
        """Move to a revision; from a new copy if the history does not contain the current revision any more.

        Raises ForgottenError if the history starts later, ValueError if there is no such revision.
        """
        if self.revision < self._history.first <= revision:
            self._copy()
        self._apply(self._changed_at(revision))
        self.revision = revision

    def _changed_at(self, revision: int) -> dict[str | type, Values]:
        """Return, by part, the values at a revision of all that differs there."""
        values: dict[str | type, Values] = {}
        if revision < self.revision:
            for part, key, before, _ in reversed(self._history.between(revision, self.revision)):
                values.setdefault(part, {})[key] = before
        else:
            for part, key, _, after in self._history.between(self.revision, revision):
                values.setdefault(part, {})[key] = after
        return values

    def _apply(self, values: dict[str | type, Any]) -> None:
        cluster = self.cluster
        # A change of an object may remove pending allocations, which are therefore restored afterwards.
        pending: dict[str, AllocationResult | None] = {**cluster.devices.pending_allocations()}
        nodes, images = values.pop(NODE, {}), values.pop(IMAGE, {})
        sizes = {**cluster.images.sizes(), **images} if nodes else {}
        cluster.replace_placed(nodes, values.pop(POD, {}))
        if nodes:
            # Sizes must not depend on the order in which nodes are added again.
            cluster.images.set_sizes(sizes)
        pending.update(values.pop(PENDING_ALLOCATION, {}))
        members, nominations = values.pop(MEMBER, {}), values.pop(NOMINATION, {})
        for kind, problem in values.pop(UNREADABLE, {}).items():
            cluster.set_unreadable(kind, problem)
        for kind, objects in values.items():
            assert isinstance(kind, type)
            for key, versions in objects.items():
                cluster.replace_object(kind, key, versions)
        cluster.devices.set_pending_allocations(
            {uid: allocation for uid, allocation in pending.items() if allocation is not None}
        )
        self._set_members(members)
        if nominations:
            self.nominator.replace(nominations)

    def _set_members(self, members: dict[tuple[str, str], Pod | None]) -> None:
        groups = self.cluster.groups
        assert groups is not None or not members
        for (key, uid), pod in members.items():
            if groups is None:
                break
            if pod is None:
                groups.remove_pending(key, uid)
            else:
                groups.add_pending(key, pod)
