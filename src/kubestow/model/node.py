"""Nodes, what selects them, and namespaces."""

from kubestow.model.meta import Base, ObjectMeta, ResourceList


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


class NodeSpec(Base, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Base, frozen=True):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declaredFeatures: tuple[str, ...] = ()


class Node(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class NodeSelectorRequirement(Base, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Base, frozen=True):
    matchExpressions: tuple[NodeSelectorRequirement, ...] = ()
    matchFields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Base, frozen=True):
    nodeSelectorTerms: tuple[NodeSelectorTerm, ...] = ()
