"""Creation and update of objects: schema, server-set metadata, rules of the resource, optimistic concurrency."""

from collections.abc import Callable, Sequence
from typing import Any

from kubestow.apiserver import errors
from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.admission.writes import Write
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.kinds.resource import Part, Resource
from kubestow.apiserver.kinds.subresources import SUBRESOURCES
from kubestow.apiserver.objects import removal
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.patches import ownership
from kubestow.apiserver.rules.names import FORBIDDEN, INVALID, MAX_PREFIX_LENGTH, REQUIRED, check_metadata, check_name
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Record, encode
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SERVER_SET = ("uid", "resourceVersion", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
_KEPT = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")


def check(resource: Resource, obj: Object, intent: Intent) -> list[Cause]:
    """Check an object against its schema, and return the invalid values.

    Raises ApiError for values of a wrong type. Unknown fields are rejected, warned of or ignored, as requested.
    """
    report = Report()
    resource.schema.check(obj, "", report)
    if report.wrong:
        found = "; ".join(f"{path or 'the body'}: {what}" for path, what in report.wrong[:10])
        raise errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {found}'
        )
    problems = intent.strict
    if report.unknown and intent.validation != "Ignore":
        problems = list(dict.fromkeys([*problems, *(f'unknown field "{path}"' for path in report.unknown)]))[:100]
    if problems:
        if intent.validation == "Strict":
            raise errors.bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"strict decoding error: {', '.join(problems)}"
            )
        intent.warnings += problems
    return report.invalid


def new_uid(random: Callable[[int], bytes]) -> str:
    """Return a random UID (UUID version 4)."""
    raw = bytearray(random(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def generated_name(prefix: str, random: Callable[[int], bytes]) -> str:
    """Return a name of a prefix and five random characters."""
    suffix = "".join(_SUFFIX_ALPHABET[byte % len(_SUFFIX_ALPHABET)] for byte in random(5))
    return prefix[:MAX_PREFIX_LENGTH] + suffix


class Writer:
    """Creates and updates objects in a store."""

    def __init__(self, store: Store, admission: Admission | None = None) -> None:
        self.store = store
        self.admission = admission or Admission(store)

    def create(self, resource: Resource, namespace: str, obj: Object, intent: Intent) -> Record:
        """Create an object. Raises ApiError if it is rejected."""
        causes = [] if intent.trusted else check(resource, obj, intent)
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        resource.add_spec(obj)
        if resource.conversion is not None:
            obj = resource.conversion.to_stored(obj)
        metadata = self._new_metadata(resource, namespace, obj)
        ownership.drop_invalid(obj)
        rules = resource.rules
        rules.default(obj)
        write = Write("CREATE", resource, obj, None, intent)
        with self.admission.step("admit", "CREATE"):
            self.admission.change(resource, obj)
            self._mutate(write)
        rules.prepare_create(obj)
        rules.drop_disabled_fields(obj, None, self.admission.features)
        rules.set_author(obj, intent.user)
        rules.set_timestamps(obj, None, self.store.now())
        rules.complete(obj)
        name = metadata["name"]
        wrong = [*check_name("metadata.name", name, rules.valid_name), *check_metadata(metadata)]
        if rules.validate_in_namespace is not None:
            wrong += rules.validate_in_namespace(obj, self._labels_of(namespace))
        wrong += rules.validate_with_gates(obj, self.admission.features)
        self._require_valid(resource, obj, [*wrong, *rules.validate(obj)], causes)
        self._require_valid(resource, obj, list(rules.validate_last(obj, None)))
        if self.store.get(resource.storage, namespace, name) is not None:
            raise errors.already_exists(resource.group, resource.plural, name)
        with self.admission.step("validate", "CREATE"):
            self.admission.check(resource, obj)
            self.admission.review(write)
            self.admission.charge(resource, obj, None, "", dry_run=intent.dry_run)
        if intent.named and not intent.applies:
            ownership.track_create(resource, obj, intent, self.store.now())
        if intent.dry_run:
            return Record(resource, obj, self.store.rv, encode(obj))
        return self.store.put(resource.storage, obj)

    def _new_metadata(self, resource: Resource, namespace: str, obj: Object) -> Object:
        metadata: Object = obj.setdefault("metadata", {})
        for key in _SERVER_SET:
            metadata.pop(key, None)
        if resource.namespaced:
            given = metadata.get("namespace", namespace)
            if given != namespace:
                raise errors.bad_request(_OTHER_NAMESPACE)
            metadata["namespace"] = namespace
            self._require_namespace(resource, namespace, metadata.get("name", ""))
        else:
            metadata.pop("namespace", None)
        if not metadata.get("name"):
            prefix = metadata.get("generateName", "")
            if not prefix:
                raise errors.invalid(
                    resource.group, resource.kind, "",
                    [("metadata.name", REQUIRED, "Required value: name or generateName is required")],
                )  # fmt: skip
            metadata["name"] = generated_name(prefix, self.store.random)
        metadata["uid"] = new_uid(self.store.random)
        metadata["creationTimestamp"] = self.store.now()
        if resource.counts_generation:
            metadata["generation"] = 1
        return metadata

    def _mutate(self, write: Write) -> None:
        """Apply mutating policies to a new object, then check its schema and set defaults again."""
        if self.admission.mutate(write) and write.new is not None:
            report = Report()
            write.resource.schema.check(write.new, "", report)
            if report.wrong:
                found = "; ".join(f"{path}: {what}" for path, what in report.wrong[:10])
                raise errors.internal(f"the object is not a valid {write.resource.kind} after admission: {found}")
            write.resource.rules.default(write.new)

    def _require_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        record = self.store.get("namespaces", "", namespace)
        if record is None:
            raise errors.not_found("", "namespaces", namespace)
        if record.fields[0] == "Terminating":
            raise errors.forbidden(
                resource.group, resource.plural, name,
                f"unable to create new content in namespace {namespace} because it is being terminated",
            )  # fmt: skip

    def _labels_of(self, namespace: str) -> dict[str, str]:
        record = self.store.get("namespaces", "", namespace)
        return {} if record is None else record.object()["metadata"].get("labels", {})

    def _require_valid(
        self, resource: Resource, obj: Object, causes: list[Cause], by_schema: Sequence[Cause] = ()
    ) -> None:
        """Raise the errors of rules and schema, if any; an error of a rule hides those of the schema for its field."""
        if by_schema:
            paths = [path for path, _, _ in causes]
            causes = causes + [
                one for one in by_schema if not any(path == one[0] or path.startswith(f"{one[0]}.") for path in paths)
            ]
        if causes:
            raise errors.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), causes)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        intent: Intent,
        *,
        sub: str = "",
        reviewed: bool = False,
    ) -> Record:
        """Replace an object, or the part of a subresource, with the result of `change`.

        `change` receives a copy of the current object, which it may modify, and returns the new one. `reviewed`:
        policies have already been evaluated, on another form of the object. Raises ApiError if the object is rejected.
        """
        current = self.store.get(resource.storage, namespace, name)
        if current is None:
            raise errors.not_found(resource.group, resource.plural, name)
        old = current.object()
        conversion = resource.conversion
        new = change(current.object() if conversion is None else conversion.from_stored(current.object()))
        wrong = [] if intent.trusted else check(resource, new, intent)
        new["apiVersion"], new["kind"] = resource.api_version, resource.kind
        resource.add_spec(new)
        if conversion is not None:
            new = conversion.to_stored(new)
        write = Write("UPDATE", resource, new, old, intent, sub)
        if not reviewed:
            with self.admission.step("admit", "UPDATE"):
                self._mutate(write)
        self._keep_identity(resource, new, old, current)
        part = SUBRESOURCES[sub].part or _WHOLE if sub else _WHOLE
        new = part.merge(new, old, resource)
        metadata = new["metadata"]
        rules = resource.rules
        if part.has_rules:
            rules.default(new)
            if not sub:
                self.admission.complete(resource, new)
            rules.prepare_update(new, old)
            rules.drop_disabled_fields(new, old, self.admission.features)
            rules.set_timestamps(new, old, self.store.now())
            causes = [
                *check_metadata(metadata),
                *rules.validate(new),
                *rules.validate_with_gates(new, self.admission.features),
            ]
            causes += (part.validate_update or rules.validate_update)(new, old)
            self._require_valid(resource, new, causes, wrong)
            if resource.counts_generation and _desired_state(new) != _desired_state(old):
                metadata["generation"] = metadata.get("generation", 0) + 1
        else:
            # The spec of the request is ignored, even if it is invalid.
            wrong = [one for one in wrong if not one[0].startswith("spec")]
            rules.prepare_status(new, old)
            wrong += rules.validate_status(new, old)
            if metadata != old["metadata"]:
                wrong += check_metadata(metadata)
            self._require_valid(resource, new, wrong)
        if new == old:
            return current
        self._require_valid(resource, new, list(rules.validate_last(new, old)))
        write.new = new
        with self.admission.step("validate", "UPDATE"):
            self.admission.check(resource, new, old, sub)
            if not reviewed:
                self.admission.review(write)
            self.admission.charge(resource, new, old, sub, dry_run=intent.dry_run)
        if not intent.applies:
            ownership.track_update(resource, new, old, intent, sub, self.store.now())
        if intent.dry_run:
            return Record(resource, new, current.rv, encode(new))
        record = self.store.put(resource.storage, new)
        if "deletionTimestamp" in metadata and removal.is_removable(resource, new):
            return self.store.delete(resource.storage, record)
        return record

    def _keep_identity(self, resource: Resource, new: Object, old: Object, current: Record) -> None:
        metadata, kept = new.setdefault("metadata", {}), old["metadata"]
        given_version = metadata.get("resourceVersion")
        if given_version not in (None, "", "0", str(current.rv)):
            if not given_version.isdecimal():
                raise errors.invalid(
                    resource.group, resource.kind, current.name,
                    [("metadata.resourceVersion", INVALID, f'Invalid value: "{given_version}": must be a number')],
                )  # fmt: skip
            raise errors.outdated(resource.group, resource.plural, current.name)
        for key in ("name", "namespace"):
            if metadata.setdefault(key, kept.get(key, "")) != kept.get(key, ""):
                other = f"the name of the object ({metadata[key]}) does not match the name on the URL ({current.name})"
                raise errors.bad_request(other if key == "name" else _OTHER_NAMESPACE)
            if not metadata[key]:
                del metadata[key]
        if metadata.get("uid") and metadata["uid"] != current.uid:
            names = (resource.group, resource.plural, current.name)
            raise errors.failed_precondition(*names, "UID", metadata["uid"], current.uid)
        for key in _KEPT:
            if key in kept:
                metadata[key] = kept[key]
            else:
                metadata.pop(key, None)
        metadata["resourceVersion"] = kept["resourceVersion"]
        if "deletionTimestamp" in kept:
            added = set(metadata.get("finalizers") or ()) - set(kept.get("finalizers") or ())
            if added:
                message = "Forbidden: no new finalizers can be added if the object is being deleted"
                self._require_valid(resource, new, [("metadata.finalizers", FORBIDDEN, message)])


def _desired_state(obj: Object) -> Object:
    """Return the part of an object whose changes increase the generation."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}


def _keep_status(new: Object, old: Object, resource: Resource) -> Object:
    if resource.has_status:
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
    return new


_WHOLE = Part(_keep_status, validate_update=None)
"""The whole object, without its status if that is a subresource."""
