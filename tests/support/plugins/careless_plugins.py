"""Plugins that let equal pods share results, although these depend on data that changes: each forgets another rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kubestow.plugin import CustomObject, Handle, NodeRow, PodInfo, custom_resource, unschedulable, watch
from kubestow.plugin.fast import NodeView, PodsRead, Rejections, Rows, RowsOfPods


@custom_resource("example.com/v1", "limits", namespaced=False)
class Limit(CustomObject, frozen=True):
    """A number for the node of the same name."""

    value: int = 0


class _Careless:
    name = ""
    watches: Sequence[Any] = (Limit,)

    def __init__(self, args: Any, handle: Handle) -> None:
        self.handle = handle
        self.prepare()

    def prepare(self) -> None:
        """Keep what the plugin reads."""

    def sign(self, pod: PodInfo) -> Any:
        return "all pods are equal"


class ReadsObjects(_Careless):
    """Reads objects in its filter."""

    name = "ReadsObjects"
    reads_pods = PodsRead.NOTHING

    def prepare(self) -> None:
        self.limits = self.handle.objects(Limit)

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> str | None:
        limit = self.limits.get(node.name)
        return None if limit is None or limit.value % 3 else "limit is a multiple of three"


class SumsObjects(_Careless):
    """Has a state that depends on all objects, and is called for several pods in advance."""

    name = "SumsObjects"
    reads_pods = PodsRead.SUMS

    def prepare(self) -> None:
        self.limits = self.handle.objects(Limit).index_by(lambda limit: limit.value % 2)

    def pre_filter(self, pod: PodInfo) -> int:
        return len(self.limits[0])

    def join_states(self, states: Sequence[int], rows: RowsOfPods) -> Any:
        return rows.spread(states)

    def filter_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        refused = (view.pod_count[rows] + state) % 4 == 3
        return Rejections(refused.astype(np.int64), lambda _: _REFUSED)


class CopiesObjects(_Careless):
    """Copies objects to an attribute when they change."""

    name = "CopiesObjects"

    def prepare(self) -> None:
        self.total = 0
        limits = self.handle.objects(Limit)
        limits.on_change(lambda _key, _limit: setattr(self, "total", sum(limit.value for limit in limits)))

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        return (self.total * len(node.name) + sum(map(ord, node.name))) % 100


class CopiesUnreadObjects(_Careless):
    """Declares that cycles do not read the objects, but reads a copy."""

    name = "CopiesUnreadObjects"

    def prepare(self) -> None:
        self.values: dict[str, int] = {}
        self.handle.objects(Limit, read_in_cycle=False).on_change(
            lambda key, limit: self.values.update({key: 0 if limit is None else limit.value})
        )

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        return self.values.get(node.name, 50)


class KeepsColumns(_Careless):
    """Keeps numbers in columns; the rule that is the fastest."""

    name = "KeepsColumns"
    reads_pods = PodsRead.NOTHING

    def prepare(self) -> None:
        self.columns = self.handle.node_columns()
        self.handle.objects(Limit, read_in_cycle=False).on_change(
            lambda key, limit: self.columns.set(key, {} if limit is None else {"value": limit.value})
        )

    def score_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> Any:
        return self.columns.get("value", view, rows, default=30)

    def filter_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        refused = self.columns.get("value", view, rows) == 7
        return Rejections(refused.astype(np.int64), lambda _: _REFUSED)


class CountsPods(_Careless):
    """Reads pods by key."""

    name = "CountsPods"
    reads_pods = PodsRead.NOTHING

    def prepare(self) -> None:
        self.pods = self.handle.pods.index_by(lambda pod: pod.labels.get("app"))

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        count = self.pods.assigned_count("web") + self.pods.requested("web").get("cpu", 0)
        return (count * sum(map(ord, node.name))) % 100


class CopiesPods(_Careless):
    """Writes columns when the pods of a node change."""

    name = "CopiesPods"
    reads_pods = PodsRead.NOTHING

    def prepare(self) -> None:
        self.columns = self.handle.node_columns()
        self.pods = self.handle.pods.index_by(lambda pod: pod.pod.spec.nodeName or None, read_in_cycle=False)
        self.pods.on_change(lambda node: self.columns.set(node, {"pods": self.pods.assigned_count(node)}))

    def score_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> Any:
        return self.columns.get("pods", view, rows) * 7 % 100


class CountsReservations(_Careless):
    """Counts its own calls of Reserve."""

    name = "CountsReservations"

    def prepare(self) -> None:
        self.count = 0

    def reserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self.count += 1

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self.count -= 1

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> str | None:
        return "not this turn" if (self.count + sum(map(ord, node.name))) % 3 == 0 else None


class ReadsTime(_Careless):
    """Reads the time."""

    name = "ReadsTime"

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        return int(self.handle.clock.now() + sum(map(ord, node.name))) % 100


class KeepsMethods(_Careless):
    """Reads the time and nominated pods by methods that it keeps."""

    name = "KeepsMethods"
    reads_pods = PodsRead.NOTHING

    def prepare(self) -> None:
        self.now, self.nominated_on = self.handle.clock.now, self.handle.nominator.nominated_on

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        return int(self.now() + 17 * len(list(self.nominated_on(node.name))) + sum(map(ord, node.name))) % 100


class ReadsListers(_Careless):
    """Reads other objects of the scheduler's own cluster."""

    name = "ReadsListers"

    def prepare(self) -> None:
        self.placed = self.handle.cluster.placed_pods

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        return (len(list(self.placed())) * 11 + sum(map(ord, node.name))) % 100


class Blocks(_Careless):
    """Rejects pods while its kind is not served."""

    name = "Blocks"
    watches = (watch(Limit, when_unavailable="block"),)

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> str | None:
        return None


_REFUSED = unschedulable("refused")
CARELESS = (
    ReadsObjects,
    SumsObjects,
    CopiesObjects,
    CopiesUnreadObjects,
    KeepsColumns,
    CountsPods,
    CopiesPods,
    CountsReservations,
    ReadsTime,
    KeepsMethods,
    ReadsListers,
    Blocks,
)
