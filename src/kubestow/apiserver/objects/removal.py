"""Deletion of objects: immediately, after a grace period or finalizers, with or without their dependents."""

from dataclasses import dataclass
from typing import Any

from kubestow.api.timestamps import format_time
from kubestow.apiserver import errors
from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.admission.writes import Write
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.schema.reader import structs
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Record, encode
from kubestow.apiserver.store.store import Store

FOREGROUND = "foregroundDeletion"
_PROTECTED = ("default", "kube-system", "kube-public", "kube-node-lease")
_DONE = ("Succeeded", "Failed")
_POLICIES = ("Background", "Foreground", "Orphan")


@dataclass(slots=True)
class DeleteOptions:
    """The options of a deletion."""

    grace_seconds: int | None = None
    propagation: str = "Background"
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def read_options(body: dict[str, Any] | None, query: dict[str, str]) -> DeleteOptions:
    """Read the options from the body and query of a request. Raises ApiError if they are invalid."""
    options = DeleteOptions()
    given = dict(body or {})
    if given:
        report = Report()
        structs()["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].check(given, "", report)
        if report.wrong:
            raise errors.bad_request("DeleteOptions: " + "; ".join(f"{path}: {what}" for path, what in report.wrong))
    if "gracePeriodSeconds" in query:
        try:
            given["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
        except ValueError as error:
            raise errors.bad_request("gracePeriodSeconds: must be a whole number") from error
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query["propagationPolicy"]
    if query.get("dryRun"):
        given["dryRun"] = [query["dryRun"]]
    options.grace_seconds = given.get("gracePeriodSeconds")
    options.propagation = given.get("propagationPolicy") or (
        "Orphan" if given.get("orphanDependents") else "Background"
    )
    if options.propagation not in _POLICIES:
        raise errors.bad_request(f"propagationPolicy: must be one of {', '.join(_POLICIES)}")
    preconditions = given.get("preconditions", {})
    options.uid = preconditions.get("uid", "")
    options.resource_version = preconditions.get("resourceVersion", "")
    options.dry_run = bool(given.get("dryRun"))
    return options


def is_removable(resource: Resource, obj: dict[str, Any]) -> bool:
    """Return whether an object that is being deleted can be removed: no finalizers and no grace period are left."""
    metadata = obj["metadata"]
    if metadata.get("finalizers"):
        return False
    if resource.storage == "namespaces":
        return not obj.get("spec", {}).get("finalizers")
    return bool(metadata.get("deletionGracePeriodSeconds", 0) == 0)


def set_owners(obj: dict[str, Any], owners: list[dict[str, Any]]) -> None:
    """Set the owner references of an object; an empty list removes the field."""
    obj["metadata"]["ownerReferences"] = owners
    if not owners:
        del obj["metadata"]["ownerReferences"]


class Remover:
    """Deletes objects from a store."""

    def __init__(self, store: Store, admission: Admission | None = None) -> None:
        self.store = store
        self.admission = admission or Admission(store)

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions, intent: Intent
    ) -> tuple[Record, bool]:
        """Delete an object; return its last or current state, and whether it is removed. Raises ApiError."""
        current = self.store.get(resource.storage, namespace, name)
        if current is None:
            raise errors.not_found(resource.group, resource.plural, name)
        self._check_preconditions(resource, current, options)
        if resource.storage == "namespaces" and name in _PROTECTED and not intent.trusted:
            raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")
        obj = current.object()
        with self.admission.step("validate", "DELETE"):
            self.admission.review(Write("DELETE", resource, None, obj, intent))
        metadata = obj["metadata"]
        before = dict(metadata)
        finalizers = list(metadata.get("finalizers", ()))
        if options.propagation == "Foreground" and self.store.dependents.get(current.uid):
            if FOREGROUND not in finalizers:
                finalizers.append(FOREGROUND)
        elif FOREGROUND in finalizers:
            finalizers.remove(FOREGROUND)
        if finalizers != metadata.get("finalizers", []):
            metadata["finalizers"] = finalizers
        if options.propagation == "Orphan" and not options.dry_run:
            self._release_dependents(current.uid)
        grace = _grace(resource, obj, options)
        if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
            metadata["deletionTimestamp"] = format_time(self.store.clock.now() + grace)
            metadata["deletionGracePeriodSeconds"] = grace
            if resource.counts_generation:
                metadata["generation"] = metadata.get("generation", 0) + 1
            if resource.storage == "namespaces":
                obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        if options.dry_run or intent.dry_run:
            return Record(resource, obj, current.rv, encode(obj)), is_removable(resource, obj)
        if is_removable(resource, obj):
            return self.store.delete(resource.storage, current), True
        if metadata == before:
            return current, False
        return self.store.put(resource.storage, obj), False

    def _check_preconditions(self, resource: Resource, current: Record, options: DeleteOptions) -> None:
        for label, wanted, actual in (
            ("UID", options.uid, current.uid),
            ("ResourceVersion", options.resource_version, str(current.rv)),
        ):
            if wanted and wanted != actual:
                names = (resource.group, resource.plural, current.name)
                raise errors.failed_precondition(*names, label, wanted, actual)

    def _release_dependents(self, uid: str) -> None:
        for storage, namespace, name in list(self.store.dependents.get(uid, ())):
            record = self.store.get(storage, namespace, name)
            if record is not None:
                obj = record.object()
                set_owners(obj, [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid])
                self.store.put(storage, obj)


def _grace(resource: Resource, obj: dict[str, Any], options: DeleteOptions) -> int:
    """Return the grace period in seconds; 0 for all objects except unfinished pods bound to a node."""
    if resource.storage != "pods":
        return 0
    spec = obj.get("spec", {})
    if not spec.get("nodeName") or obj.get("status", {}).get("phase") in _DONE:
        return 0
    if options.grace_seconds is not None:
        return max(0, options.grace_seconds)
    return int(spec.get("terminationGracePeriodSeconds", 30))
