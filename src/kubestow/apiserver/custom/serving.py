"""Serving of custom resources according to the current definitions.

A definition without name conflicts is established: its resources are added to the registry and the store. When it is
deleted, its objects are deleted first: a finalizer delays its removal. As in kube-apiserver, this is part of the server
and works without controllers.
"""

import asyncio
from typing import Any

from kubestow.apiserver.controllers.api import Api, condition_of, has_condition, set_condition
from kubestow.apiserver.custom.resources import resources_of
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.removal import Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.store.records import Change
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

Object = dict[str, Any]
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class CustomKinds:
    """Adds and removes the resources of definitions."""

    def __init__(self, writer: Writer, remover: Remover) -> None:
        self._api = Api(writer, remover)
        self._store = writer.store
        self._served: dict[str, tuple[Resource, ...]] = {}
        self._generations: dict[str, int] = {}
        """The served generation of each definition."""
        self._loop = asyncio.get_running_loop()
        definitions = self._store.collection(_DEFINITIONS)
        definitions.subscribers.append(self._changed)
        for record in definitions.ordered(None):
            self._update(record.name)

    def _changed(self, change: Change) -> None:
        self._loop.call_soon(self._update, change.record.name)

    def _update(self, name: str) -> None:
        """Update the served resources of a definition, and its status; a failure is logged."""
        try:
            self._synchronize(name)
        except Exception as error:
            log.unexpected("A definition cannot be served", err=error, definition=name)

    def _synchronize(self, name: str) -> None:
        record = self._store.get(_DEFINITIONS, "", name)
        if record is None:
            self._serve(name, ())
            self._generations.pop(name, None)
            return
        definition = record.object()
        if "deletionTimestamp" in definition["metadata"]:
            self._delete_objects(name, definition)
            return
        conflict = self._conflict(definition)
        generation = definition["metadata"].get("generation", 0)
        if conflict is None and self._generations.get(name) != generation:
            self._serve(name, resources_of(definition))
            self._generations[name] = generation
        self._report(definition, conflict)

    def _serve(self, name: str, resources: tuple[Resource, ...]) -> None:
        before = self._served.pop(name, ())
        if resources:
            self._store.add(resources[0])
            self._served[name] = resources
        elif before:
            self._store.drop(before[0].storage)
        served = tuple(one for one in resources if one.served)
        self._store.registry.replace(tuple(one for one in before if one.served), served)

    def _conflict(self, definition: Object) -> tuple[str, str] | None:
        """Return reason and message if a name is in use by another resource; the last one if there are several."""
        found: tuple[str, str] | None = None
        names, group = definition["spec"]["names"], definition["spec"]["group"]
        own = self._served.get(definition["metadata"]["name"], ())
        others = [one for one in self._store.registry.resources if one.group == group and one not in own]
        for reason, wanted, taken in (
            ("PluralConflict", {names["plural"]}, {one.plural for one in others}),
            ("SingularConflict", {names["singular"]}, {one.singular for one in others}),
            ("ShortNamesConflict", set(names.get("shortNames", ())), {s for one in others for s in one.short_names}),
            ("KindConflict", {names["kind"]}, {one.kind for one in others}),
            ("ListKindConflict", {names["listKind"]}, {one.list_kind for one in others}),
        ):
            if wanted & taken:
                found = reason, f'"{min(wanted & taken)}" is already in use'
        return found

    def _report(self, definition: Object, conflict: tuple[str, str] | None) -> None:
        def report(current: Object) -> None:
            status, now = current.setdefault("status", {}), self._store.now()
            conditions = status.setdefault("conditions", [])
            if conflict is None:
                status["acceptedNames"] = current["spec"]["names"]
                set_condition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
                message = "the initial names have been accepted"
                set_condition(conditions, "Established", "True", "InitialNamesAccepted", message, now)
            else:
                set_condition(conditions, "NamesAccepted", "False", *conflict, now)
                if not has_condition(current, "Established"):
                    message = "not all names are accepted"
                    set_condition(conditions, "Established", "False", "NotAccepted", message, now)

        metadata = definition["metadata"]
        self._api.update(_DEFINITIONS, "", metadata["name"], report, sub="status")
        if FINALIZER not in metadata.get("finalizers", ()):

            def protect(current: Object) -> None:
                current["metadata"].setdefault("finalizers", []).append(FINALIZER)

            self._api.update(_DEFINITIONS, "", metadata["name"], protect)

    def _delete_objects(self, name: str, definition: Object) -> None:
        """Delete the objects of a definition, and remove its finalizer when none is left."""
        served = self._served.get(name, ())
        left = 0
        for record in self._store.collection(served[0].storage).ordered(None) if served else ():
            try:
                left += not self._api.delete(served[0].storage, record.namespace, record.name, uid=record.uid)
            except ApiError:
                left += 1
        if not left:
            self._api.remove_finalizer(_DEFINITIONS, "", name, FINALIZER)
            return

        def report(current: Object) -> None:
            conditions = current["status"].setdefault("conditions", [])
            message = "CustomResource deletion is in progress"
            now = self._store.now()
            set_condition(conditions, "Terminating", "True", "InstanceDeletionInProgress", message, now)

        if condition_of(definition, "Terminating") is None:
            self._api.update(_DEFINITIONS, "", name, report, sub="status")
        self._loop.call_later(0.5, self._update, name)

    def close(self) -> None:
        """Stop watching definitions."""
        self._store.collection(_DEFINITIONS).subscribers.remove(self._changed)
