"""Nodes, node selectors, and namespaces."""

from kubestow.api.meta import ApiObject, Base, LabelSelectorRequirement, ResourceList


class Taint(Base, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class ContainerImage(Base, frozen=True):
    names: tuple[str, ...] = ()
    sizeBytes: int = 0


class NodeCondition(Base, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class NodePodPreemptionPolicy(Base, frozen=True):
    disableResizePreemption: tuple[str, ...] = ()
    """The owners that do not let pods be preempted for the resize of another pod of the node."""


class NodeSpec(Base, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    podPreemptionPolicy: NodePodPreemptionPolicy | None = None


class NodeStatus(Base, frozen=True):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declaredFeatures: tuple[str, ...] = ()


class Node(ApiObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(ApiObject, frozen=True):
    """A namespace, of which only the metadata is read."""


NodeSelectorRequirement = LabelSelectorRequirement
"""The API has two types with the same fields."""


class NodeSelectorTerm(Base, frozen=True):
    matchExpressions: tuple[NodeSelectorRequirement, ...] = ()
    matchFields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Base, frozen=True):
    nodeSelectorTerms: tuple[NodeSelectorTerm, ...] = ()
