"""Services and controllers (for default spreading), disruption budgets, priority classes."""

from kubestow.api.custom_kinds import custom_resource
from kubestow.api.meta import ApiObject, Base, LabelSelector


class LabelsSpec(Base, frozen=True):
    """The spec of an object that selects its pods with a map of labels."""

    selector: dict[str, str] = {}


class Service(ApiObject, frozen=True):
    spec: LabelsSpec = LabelsSpec()


class ReplicationController(ApiObject, frozen=True):
    spec: LabelsSpec = LabelsSpec()


class SelectingSpec(Base, frozen=True):
    """The spec of a controller that selects its pods with a label selector."""

    selector: LabelSelector | None = None


class ReplicaSet(ApiObject, frozen=True):
    spec: SelectingSpec = SelectingSpec()


class StatefulSet(ApiObject, frozen=True):
    spec: SelectingSpec = SelectingSpec()


class PodDisruptionBudgetStatus(Base, frozen=True):
    disruptionsAllowed: int = 0
    disruptedPods: dict[str, str | None] = {}


class PodDisruptionBudget(ApiObject, frozen=True):
    spec: SelectingSpec = SelectingSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


@custom_resource("scheduling.k8s.io/v1", "priorityclasses", namespaced=False)
class PriorityClass(ApiObject, frozen=True):
    value: int = 0
    globalDefault: bool = False
    preemptionPolicy: str | None = None
