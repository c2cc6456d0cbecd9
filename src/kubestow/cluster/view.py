"""What plugins see of nodes: the same columns whether it is the cluster itself or a what-if."""

from collections.abc import Sequence
from typing import Protocol

from kubestow.cluster.arrays import BoolArray, IdArray, IntArray
from kubestow.cluster.nodes import TaintSets
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.ports import PortIndex
from kubestow.model.node import Node


class NodeView(Protocol):
    """Rows of nodes. Columns may be longer than `size`; index them with rows."""

    size: int
    names: Sequence[str]
    nodes: Sequence[Node | None]
    pods: Sequence[dict[str, PodInfo]]
    live: BoolArray
    resource_index: dict[str, int]
    allocatable: IntArray
    requested: IntArray
    non_zero: IntArray
    pod_count: IntArray
    allowed_pods: IntArray
    unschedulable: BoolArray
    taint_set: IdArray
    taint_sets: TaintSets

    @property
    def ports(self) -> PortIndex: ...

    def label_ids(self, key: str) -> IdArray:
        """The value ids of a label by row, 0 where absent."""
        ...

    def label_id(self, key: str, value: str) -> int:
        """The id of a label value; -1 if no node ever had it."""
        ...

    def label_values(self, key: str) -> Sequence[str]:
        """The values of a label by id; index 0 stands for the absent label."""
        ...

    def source_rows(self) -> IntArray:
        """The cluster's row number of each row."""
        ...
