"""Subresources that are more than a part of an object: binding, eviction, scale."""

from typing import Any

from kubestow.apiserver import errors
from kubestow.apiserver.objects.binding import Binder
from kubestow.apiserver.objects.eviction import Evictor
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.patches import json_patch, merge_patch
from kubestow.apiserver.printing import cells
from kubestow.apiserver.resources import Resource
from kubestow.apiserver.rest import bodies, reading
from kubestow.apiserver.rest.paths import Target
from kubestow.apiserver.schema.reader import struct_named
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store
from kubestow.http.messages import Request

Object = dict[str, Any]


def _demand(document: Object, group: str, kind: str) -> None:
    report = Report()
    struct_named(group, kind).check(document, "", report)
    told = [f"{path}: {what}" for path, what in report.wrong]
    told += [f"{path}: {what}" for path, _, what in report.invalid]
    if told:
        raise errors.bad_request(f"{kind}: {'; '.join(told)}")


class Subresources:
    """Requests on subresources."""

    def __init__(self, store: Store, writer: Writer, evictor: Evictor) -> None:
        self.store = store
        self.writer = writer
        self.binder = Binder(store)
        self.evictor = evictor

    def bind(self, request: Request, namespace: str, name: str, intent: Intent) -> None:
        """Binds a pod to a node."""
        document = bodies.read_object(request)
        bodies.demand_kind(document, "v1", "Binding")
        _demand(document, "core.v1", "Binding")
        name = name or document.get("metadata", {}).get("name", "")
        self.binder.bind(namespace, name, document, intent)

    def evict(self, request: Request, target: Target, intent: Intent) -> None:
        """Removes a pod if the budgets allow it."""
        document = bodies.read_object(request)
        bodies.demand_kind(document, "policy/v1", "Eviction")
        _demand(document, "policy.v1", "Eviction")
        self.evictor.evict(target.namespace or "", target.name, document.get("deleteOptions"), request.query, intent)

    def scale(self, target: Target) -> Object:
        """The scale of a workload."""
        record = reading.get(self.store, target.resource, target.namespace or "", target.name)
        return _scale(target.resource, record)

    def rescale(self, request: Request, target: Target, intent: Intent) -> Object:
        """Sets the number of replicas, by a whole Scale or a patch of it."""
        resource = target.resource
        record = reading.get(self.store, resource, target.namespace or "", target.name)
        current = _scale(resource, record)
        if request.method == "PUT":
            wanted = bodies.read_object(request)
            bodies.demand_kind(wanted, "autoscaling/v1", "Scale")
        else:
            media = bodies.media_type(request)
            patch = bodies.read_json(request.body)
            if media == bodies.JSON_PATCH:
                wanted = json_patch.apply(current, patch)
            elif media in (bodies.MERGE_PATCH, bodies.STRATEGIC_PATCH):
                wanted = merge_patch.apply(current, patch)
            else:
                raise errors.unsupported_media_type(media, (bodies.JSON_PATCH, bodies.MERGE_PATCH))
        _demand(wanted, "autoscaling.v1", "Scale")
        replicas = wanted.get("spec", {}).get("replicas", 0)
        if replicas < 0:
            cause = ("spec.replicas", "FieldValueInvalid", f"Invalid value: {replicas}: must not be negative")
            raise errors.invalid("autoscaling", "Scale", target.name, [cause])

        def change(obj: Object) -> Object:
            obj["spec"]["replicas"] = replicas
            version = wanted.get("metadata", {}).get("resourceVersion")
            if version:
                obj["metadata"]["resourceVersion"] = version
            return obj

        updated = self.writer.update(resource, target.namespace or "", target.name, change, intent)
        return _scale(resource, updated)


def _scale(resource: Resource, record: Record) -> Object:
    obj = record.object()
    spec, status = obj.get("spec", {}), obj.get("status", {})
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    plain = resource.kind == "ReplicationController"
    chosen = cells.plain_selector(spec.get("selector")) if plain else cells.selector(spec.get("selector"))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in kept if key in obj["metadata"]},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": chosen},
    }
