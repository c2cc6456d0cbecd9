"""OpenAPI documents, generated from the tables of types: version 3 per API group and version, and version 2."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.resources import Registry
from kubestow.apiserver.schema.types import Choice, Field, ListOf, MapOf, Scalar, Struct, Type
from kubestow.apiserver.store.records import encode
from kubestow.telemetry.build import KUBERNETES

Object = dict[str, Any]
_KIND = "x-kubernetes-group-version-kind"
_REF = "#/components/schemas/"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_VERBS = ("get", "put", "patch", "delete")
_VERSION = f"v{KUBERNETES}"


PROTOBUF = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = b"\n\nKubernetes\x12%c%s" % (len(_VERSION), _VERSION.encode())
IN_PROTOBUF = b"\n\x032.0\x12%c%sB\x00" % (len(_INFO), _INFO)
"""Version 2 for clients that accept only protobuf. It is empty: kubectl reads it only for kinds that are not served;
for the others it uses version 3."""


class OpenApi:
    """The OpenAPI documents of a registry; each is cached until its resources change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._cache: dict[str, tuple[tuple[Resource, ...], bytes]] = {}

    def _resources(self) -> dict[str, tuple[Resource, ...]]:
        found: dict[str, tuple[Resource, ...]] = {}
        for one in self._registry.resources:
            path = f"apis/{one.api_version}" if one.group else f"api/{one.version}"
            found[path] = (*found.get(path, ()), one)
        return found

    def _get(self, path: str, resources: tuple[Resource, ...], make: Callable[[tuple[Resource, ...]], bytes]) -> bytes:
        made = self._cache.get(path)
        if made is None or made[0] != resources:
            made = self._cache[path] = (resources, make(resources))
        return made[1]

    def index(self) -> bytes:
        """Return the document at /openapi/v3."""
        paths = {}
        for path, resources in self._resources().items():
            digest = hashlib.sha256(self._get(path, resources, _version_three)).hexdigest().upper()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return encode({"paths": paths})

    def document(self, path: str) -> bytes | None:
        """Return the document of a group and version, such as `apis/apps/v1`; None if it is not served."""
        resources = self._resources().get(path)
        return None if resources is None else self._get(path, resources, _version_three)

    def version_two(self) -> bytes:
        """Return all resources as one OpenAPI version 2 document, for older clients."""
        return self._get("", self._registry.resources, _version_two)


def _version_three(resources: tuple[Resource, ...]) -> bytes:
    return encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": _VERSION},
            "paths": _paths(resources),
            "components": {"schemas": _schemas(resources)},
        }
    )


def _version_two(resources: tuple[Resource, ...]) -> bytes:
    """Return the version 2 document; objects that preserve unknown fields have no properties in it."""
    schemas = _schemas(resources)
    for name, schema in schemas.items():
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            schemas[name] = {"type": "object", _KIND: schema[_KIND]}
    text = encode(
        {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": _VERSION},
            "paths": _paths(resources),
            "definitions": schemas,
        }
    )
    return text.replace(_REF.encode(), b"#/definitions/")


def _paths(resources: tuple[Resource, ...]) -> Object:
    paths: Object = {}
    for one in resources:
        base = f"/apis/{one.api_version}" if one.group else f"/api/{one.version}"
        if one.namespaced:
            if one.stored:
                paths[f"{base}/{one.plural}"] = {"get": _operation(one, "get", "list")}
            base += "/namespaces/{namespace}"
        whole = f"{base}/{one.plural}"
        paths[whole] = {"post": _operation(one, "post", "post", _WRITE_PARAMETERS)}
        if not one.stored:
            continue
        paths[whole]["get"] = _operation(one, "get", "list")
        paths[f"{whole}/{{name}}"] = {
            verb: _operation(one, verb, verb, _WRITE_PARAMETERS if verb in ("put", "patch") else ()) for verb in _VERBS
        }
    return paths


def _operation(resource: Resource, verb: str, action: str, parameters: tuple[str, ...] = ()) -> Object:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    listed = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters]
    content = {"application/json": {"schema": {"$ref": _REF + resource.schema.openapi_name}}}
    operation: Object = {
        "operationId": f"{action}{resource.group.title().replace('.', '')}{resource.version.title()}{resource.kind}",
        "parameters": listed,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }
    if verb in ("post", "put"):
        operation["requestBody"] = {"content": {"*/*": {"schema": {"$ref": _REF + resource.schema.openapi_name}}}}
    return operation


def _schemas(resources: tuple[Resource, ...]) -> Object:
    kinds: dict[str, list[Object]] = {}
    for one in resources:
        kind = {"group": one.group, "version": one.version, "kind": one.kind}
        kinds.setdefault(one.schema.openapi_name, []).append(kind)
    schemas: Object = {}
    waiting = [one.schema for one in resources]
    while waiting:
        struct = waiting.pop()
        if struct.openapi_name in schemas:
            continue
        schemas[struct.openapi_name] = schema = _struct(struct)
        if struct.openapi_name in kinds:
            schema[_KIND] = kinds[struct.openapi_name]
        for field in struct.fields.values():
            waiting.extend(_inner(field.type))
    return schemas


def _inner(kind: Type) -> Iterator[Struct]:
    if isinstance(kind, Struct):
        yield kind
    elif isinstance(kind, ListOf):
        yield from _inner(kind.item)
    elif isinstance(kind, MapOf):
        yield from _inner(kind.value)


def _struct(struct: Struct) -> Object:
    described = getattr(struct, "openapi", None)
    if described is not None:
        return _custom(struct, described)
    schema: Object = {"type": "object"}
    if struct.description:
        schema["description"] = struct.description
    schema["properties"] = {name: _field(field) for name, field in struct.fields.items()}
    required = [name for name, field in struct.fields.items() if field.required]
    if required:
        schema["required"] = required
    if struct.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _custom(struct: Struct, described: Object) -> Object:
    """Return the declared schema of a custom kind, with the fields that every object has."""
    schema = dict(described)
    own = {name: _field(struct.fields[name]) for name in ("apiVersion", "kind", "metadata")}
    schema["properties"] = {**described.get("properties", {}), **own}
    return schema


def _field(field: Field) -> Object:
    schema = _type(field.type)
    if "$ref" in schema:
        schema = {"allOf": [schema], "default": {}} if field.required else {"allOf": [schema]}
    if field.description:
        schema["description"] = field.description
    strategies = [name for name, on in (("merge", field.merge), ("retainKeys", field.retain_keys)) if on]
    if strategies:
        schema["x-kubernetes-patch-strategy"] = ",".join(strategies)
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if isinstance(field.type, ListOf):
        schema["x-kubernetes-list-type"] = "map" if field.keys else "set" if field.set else "atomic"
        if field.keys:
            schema["x-kubernetes-list-map-keys"] = list(field.keys)
    elif field.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _type(kind: Type) -> Object:
    if isinstance(kind, Scalar):
        return dict(kind.openapi)
    if isinstance(kind, Choice):
        return {"type": "string", "enum": list(kind.values)}
    if isinstance(kind, ListOf):
        return {"type": "array", "items": _type(kind.item)}
    if isinstance(kind, MapOf):
        return {"type": "object", "additionalProperties": _type(kind.value)}
    assert isinstance(kind, Struct)
    return {"$ref": _REF + kind.openapi_name}
