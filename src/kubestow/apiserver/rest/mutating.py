"""The mutating verbs: create, update, patch, delete and deletecollection."""

import copy
from collections.abc import Callable
from typing import Any

from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.errors import bad_request, not_found, unsupported_media_type
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.removal import DeleteOptions, Remover, read_options
from kubestow.apiserver.objects.writing import Writer, check
from kubestow.apiserver.patches import json_patch, merge_patch, server_apply, strategic
from kubestow.apiserver.rest import bodies
from kubestow.apiserver.rest.bodies import read_object, require_kind
from kubestow.apiserver.rest.paths import Target
from kubestow.apiserver.rest.reading import Page, is_true, list_page, selection
from kubestow.apiserver.rest.strictness import repeated_keys, strict_errors
from kubestow.apiserver.schema.types import Report, Struct
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store
from kubestow.server.http.messages import Request

Object = dict[str, Any]
_VALIDATIONS = ("Strict", "Warn", "Ignore")


def intent_of(request: Request) -> Intent:
    """Return the options of a write request: user, dry run, field validation and field manager."""
    query = request.query
    intent = Intent(user=request.user, annotations=request.annotations)
    if query:
        dry_run = query.get("dryRun", "")
        if dry_run not in ("", "All"):
            raise bad_request(f'dryRun: "{dry_run}" is not "All"')
        intent.dry_run = dry_run == "All"
        intent.validation = query.get("fieldValidation") or "Warn"
        if intent.validation not in _VALIDATIONS:
            raise bad_request(f"fieldValidation: must be one of {', '.join(_VALIDATIONS)}")
    intent.named = bool(query.get("fieldManager"))
    intent.manager = query.get("fieldManager") or request.header(b"user-agent").partition("/")[0] or "unknown"
    return intent


def _collect_strict_errors(request: Request, intent: Intent, schema: Struct | None) -> None:
    """Store unknown and repeated fields in the intent if the client requested field validation."""
    if intent.validation != "Ignore" and "fieldValidation" in request.query and request.body[:1] == b"{":
        intent.strict = strict_errors(request.body, schema)


def _read_whole(request: Request, target: Target, intent: Intent) -> Object:
    """Return the object in the body of a request, which is of the kind of its path."""
    document = read_object(request)
    _collect_strict_errors(request, intent, target.resource.schema)
    require_kind(document, target.resource.api_version, target.resource.kind)
    return document


class Mutations:
    """Implements the mutating verbs on a store."""

    def __init__(self, store: Store, admission: Admission | None) -> None:
        self.store = store
        self.writer = Writer(store, admission)
        self.remover = Remover(store, self.writer.admission)

    def create(self, request: Request, target: Target, intent: Intent) -> Record:
        """Create an object."""
        document = _read_whole(request, target, intent)
        return self.writer.create(target.resource, target.namespace or "", document, intent)

    def replace(self, request: Request, target: Target, intent: Intent) -> Record:
        """Replace an object."""
        document = _read_whole(request, target, intent)
        if not isinstance(document.get("metadata"), dict):
            raise bad_request("metadata: must be an object")
        return self.writer.update(
            target.resource, target.namespace or "", target.name, lambda _: document, intent, sub=target.sub
        )

    def patch(
        self, request: Request, target: Target, intent: Intent, require_create: Callable[[], None]
    ) -> tuple[Record, bool]:
        """Patch an object; return the result and whether it was created.

        `require_create` is called before an object is created; it raises ApiError if the user may not create it.
        """
        media = bodies.media_type(request)
        resource, namespace = target.resource, target.namespace or ""
        if media == bodies.APPLY_PATCH:
            return self._apply(request, target, intent, require_create)
        if media not in bodies.PATCHES or (resource.is_custom and media == bodies.STRATEGIC_PATCH):
            known = [one for one in bodies.PATCHES if not (resource.is_custom and one == bodies.STRATEGIC_PATCH)]
            raise unsupported_media_type(media, known)
        patch = bodies.read_json(request.body)
        _collect_strict_errors(request, intent, None)

        def change(current: Object) -> Object:
            return patched(current, patch, media, resource)

        return self.writer.update(resource, namespace, target.name, change, intent, sub=target.sub), False

    def _apply(
        self, request: Request, target: Target, intent: Intent, require_create: Callable[[], None]
    ) -> tuple[Record, bool]:
        resource, namespace, name = target.resource, target.namespace or "", target.name
        manager = request.query.get("fieldManager", "")
        if not manager:
            raise bad_request("fieldManager: is required for apply patch")
        applied = bodies.read_yaml(request.body)
        if not isinstance(applied, dict):
            raise bad_request("the body is not an object")
        require_kind(applied, resource.api_version, resource.kind)
        self._reject_repeated_keys(request, intent)
        _require_declared(resource, applied, name)
        check(resource, applied, intent)
        metadata = applied.setdefault("metadata", {})
        for key, expected in (("name", name), ("namespace", namespace)):
            if expected and metadata.setdefault(key, expected) != expected:
                raise bad_request(f"metadata.{key} is {metadata[key]!r}, the path has {expected!r}")
        if metadata.pop("managedFields", None):
            raise bad_request("metadata.managedFields must be nil")
        intent.applies = True
        force = is_true(request.query, "force")
        live, now = self.store.get(resource.storage, namespace, name), self.store.now()
        if live is None:
            if target.sub:
                raise not_found(resource.group, resource.plural, name)
            require_create()
            created = server_apply.apply(resource, None, applied, manager, now, force=force)
            return self.writer.create(resource, namespace, created, intent), True

        def change(current: Object) -> Object:
            return server_apply.apply(resource, current, applied, manager, now, force=force, sub=target.sub)

        return self.writer.update(resource, namespace, name, change, intent, sub=target.sub), False

    def _reject_repeated_keys(self, request: Request, intent: Intent) -> None:
        """Reject repeated keys in an applied object, or warn of them, as the requested field validation demands."""
        if intent.validation == "Ignore" or "fieldValidation" not in request.query:
            return
        repeated = repeated_keys(request.body)
        if repeated:
            message = "error converting YAML to JSON: yaml: unmarshal errors:\n  " + "\n  ".join(repeated)
            if intent.validation == "Strict":
                raise bad_request(f"error strict decoding YAML: {message}")
            intent.warnings.append(message)

    def delete(self, request: Request, target: Target, intent: Intent) -> tuple[Record, bool]:
        """Delete an object; return its last state and whether it is gone."""
        options = self._options(request)
        return self.remover.delete(target.resource, target.namespace or "", target.name, options, intent)

    def delete_collection(self, request: Request, target: Target, intent: Intent) -> Page:
        """Delete the selected objects; return them."""
        options = self._options(request)
        chosen = selection(target.resource, target.namespace, "", request.query)
        page = list_page(self.store, target.resource, chosen, request.query)
        for record in page.records:
            if self.store.get(target.resource.storage, record.namespace, record.name) is not None:
                self.remover.delete(target.resource, record.namespace, record.name, options, intent)
        page.metadata["resourceVersion"] = str(self.store.rv)
        return page

    def _options(self, request: Request) -> DeleteOptions:
        body = None
        if request.body:
            document = bodies.read_document(request)
            if document is not None and not isinstance(document, dict):
                raise bad_request("DeleteOptions: the body is not an object")
            body = document
        return read_options(body, request.query)


def _require_declared(resource: Resource, applied: Object, name: str) -> None:
    """Raise ApiError if an applied object has fields that the schema does not declare: they cannot be owned."""
    report = Report()
    resource.schema.check(copy.deepcopy(applied), "", report)
    if report.unknown:
        kind = f"{resource.api_version}, Kind={resource.kind}"
        message = "\n".join(f"  .{path}: field not declared in schema" for path in report.unknown)
        if len(report.unknown) == 1:
            message = message.strip()
        raise bad_request(f"failed to create typed patch object ({name}; {kind}): {message}")


def patched(current: Object, patch: Any, media: str, resource: Resource) -> Object:
    """Return the current object with a patch of the given media type applied."""
    if media == bodies.JSON_PATCH:
        return json_patch.apply(current, patch)
    if media == bodies.MERGE_PATCH:
        return merge_patch.apply(current, patch)
    return strategic.apply(current, patch, resource.schema)
