"""How changes of what is watched reach the scheduler."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kubestow.client.informer import Informer
from kubestow.client.informers import Informers
from kubestow.client.resources import DEVICE_TAINT_RULES, POD_GROUPS, PODS, WATCHED
from kubestow.config import Features
from kubestow.intake import Intake


class _IntoIntake:
    """Hands changes of one resource to the intake."""

    def __init__(self, intake: Intake, kind: type) -> None:
        self.on_add = intake.added
        self.on_update = intake.updated
        self.on_delete = intake.deleted
        self.on_access = partial(intake.access_changed, kind)


def watch_everything(
    informers: Informers, intake: Intake, features: Features, kinds: Mapping[type, type]
) -> dict[str, Informer[Any]]:
    """Watch all there is to watch from `informers.run` on; the stores by the resource's name.

    `kinds` has the kinds that objects decode to in place of others.
    """
    resources = list(WATCHED)
    if features.dra_device_taint_rules:
        resources.append(DEVICE_TAINT_RULES)
    if features.generic_workload:
        resources.append(POD_GROUPS)
    watched = [replace(resource, kind=kinds.get(resource.kind, resource.kind)) for resource in resources]
    return {
        # Pods come last: what they refer to is known then, and none of them has to be looked at again for that.
        resource.name: informers.watch(resource, _IntoIntake(intake, resource.kind), last=resource.name == PODS.name)
        for resource in watched
    }
