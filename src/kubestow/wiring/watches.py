"""What the scheduler lists and watches, and how changes reach it."""

from typing import Any

from kubestow.client import resources
from kubestow.client.informer import Informer
from kubestow.client.informers import Informers
from kubestow.intake import Intake

WATCHED: tuple[resources.Resource[Any], ...] = (
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.SERVICES,
    resources.REPLICATION_CONTROLLERS,
    resources.PERSISTENT_VOLUMES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.POD_DISRUPTION_BUDGETS,
    resources.STORAGE_CLASSES,
    resources.CSI_NODES,
    resources.CSI_DRIVERS,
    resources.CSI_STORAGE_CAPACITIES,
    resources.VOLUME_ATTACHMENTS,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_SLICES,
    resources.DEVICE_CLASSES,
)


class _IntoIntake:
    """Hands changes of one resource to the intake."""

    def __init__(self, intake: Intake) -> None:
        self.on_add = intake.added
        self.on_update = intake.updated
        self.on_delete = intake.deleted

    def on_synced(self) -> None:
        """All resources together decide when scheduling may begin."""


def watch_everything(informers: Informers, intake: Intake) -> dict[str, Informer[Any]]:
    """Watch all there is to watch from `informers.run` on; the stores by the resource's name."""
    handler = _IntoIntake(intake)
    return {resource.name: informers.watch(resource, handler) for resource in WATCHED}
