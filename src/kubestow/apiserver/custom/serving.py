"""Serving of custom resources according to the current definitions.

A definition without name conflicts is established: its resources are added to the registry and the store. When it is
deleted, its objects are deleted first: a finalizer delays its removal. As in kube-apiserver, this is part of the server
and works without controllers.
"""

import asyncio
from functools import partial
from typing import Any

from kubestow.apiserver.custom.resources import resources_of
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

Object = dict[str, Any]
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class CustomKinds:
    """Adds and removes the resources of definitions."""

    def __init__(self, writer: Writer, remover: Remover) -> None:
        self._writer = writer
        self._remover = remover
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
        def change(current: Object) -> Object:
            status = current.setdefault("status", {})
            conditions = status.setdefault("conditions", [])
            now = self._store.now()
            if conflict is None:
                status["acceptedNames"] = current["spec"]["names"]
                _set(conditions, now, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
                message = "the initial names have been accepted"
                _set(conditions, now, "Established", "True", "InitialNamesAccepted", message)
            else:
                _set(conditions, now, "NamesAccepted", "False", *conflict)
                if not any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
                    _set(conditions, now, "Established", "False", "NotAccepted", "not all names are accepted")
            return current

        name = definition["metadata"]["name"]
        resource = BY_STORAGE[_DEFINITIONS]
        self._writer.update(resource, "", name, change, internal(), sub="status")
        if FINALIZER not in definition["metadata"].get("finalizers", ()):
            self._writer.update(resource, "", name, _with_finalizer, internal())

    def _delete_objects(self, name: str, definition: Object) -> None:
        """Delete the objects of a definition, and remove its finalizer when none is left."""
        served = self._served.get(name, ())
        left = 0
        for record in self._store.collection(served[0].storage).ordered(None) if served else ():
            try:
                options, resource = DeleteOptions(uid=record.uid), served[0]
                _, removed = self._remover.delete(resource, record.namespace, record.name, options, internal())
                left += not removed
            except ApiError:
                left += 1
        if left:
            if not any(one["type"] == "Terminating" for one in definition["status"].get("conditions", ())):
                change = partial(_terminating, self._store.now())
                self._writer.update(BY_STORAGE[_DEFINITIONS], "", name, change, internal(), sub="status")
            self._loop.call_later(0.5, self._update, name)
        elif FINALIZER in definition["metadata"].get("finalizers", ()):
            self._writer.update(BY_STORAGE[_DEFINITIONS], "", name, _without_finalizer, internal())

    def close(self) -> None:
        """Stop watching definitions."""
        self._store.collection(_DEFINITIONS).subscribers.remove(self._changed)


def _set(conditions: list[Object], now: str, type_: str, status: str, reason: str, message: str) -> None:
    entry = {"type": type_, "status": status, "reason": reason, "message": message}
    for one in conditions:
        if one["type"] == type_:
            if one["status"] != status:
                one["lastTransitionTime"] = now
            one.update(entry)
            return
    conditions.append({**entry, "lastTransitionTime": now})


def _with_finalizer(current: Object) -> Object:
    current["metadata"].setdefault("finalizers", []).append(FINALIZER)
    return current


def _without_finalizer(current: Object) -> Object:
    current["metadata"]["finalizers"].remove(FINALIZER)
    return current


def _terminating(now: str, current: Object) -> Object:
    conditions = current["status"].setdefault("conditions", [])
    message = "CustomResource deletion is in progress"
    _set(conditions, now, "Terminating", "True", "InstanceDeletionInProgress", message)
    return current
