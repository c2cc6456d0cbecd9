"""How changes of what is watched reach the scheduler."""

from typing import Any

from kubestow.client.informer import Informer
from kubestow.client.informers import Informers
from kubestow.client.resources import WATCHED
from kubestow.intake import Intake


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
