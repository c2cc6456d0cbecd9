"""Services and controllers (for default spreading), disruption budgets, priority classes."""

from kubestow.model.meta import Base, LabelSelector, ObjectMeta


class ServiceSpec(Base, frozen=True):
    selector: dict[str, str] = {}


class Service(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Base, frozen=True):
    selector: dict[str, str] = {}


class ReplicationController(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectingSpec(Base, frozen=True):
    """The spec of a controller that selects its pods with a label selector."""

    selector: LabelSelector | None = None


class ReplicaSet(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class StatefulSet(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class PodDisruptionBudgetStatus(Base, frozen=True):
    disruptionsAllowed: int = 0
    disruptedPods: dict[str, str | None] = {}


class PodDisruptionBudget(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    globalDefault: bool = False
    preemptionPolicy: str | None = None
