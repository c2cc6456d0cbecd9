"""The resources of a CustomResourceDefinition: one for each served version."""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

from kubestow.apiserver.custom import definitions
from kubestow.apiserver.custom.expressions import rule_violations
from kubestow.apiserver.custom.structure import Custom, set_defaults
from kubestow.apiserver.custom.values import as_json, value_errors
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.kinds.resource import Conversion, Resource, Rules, Scale, drop_status
from kubestow.apiserver.patches.depth import is_shallow
from kubestow.apiserver.printing import cells, paths
from kubestow.apiserver.printing.columns import AGE, NAME, Column, Columns
from kubestow.apiserver.schema.reader import openapi_name, structs
from kubestow.apiserver.schema.types import Report

Object = dict[str, Any]
_SCALE = ("specReplicas", "statusReplicas", "labelSelector")


def resources_of(definition: Object) -> tuple[Resource, ...]:
    """Return the resources of a definition, the stored version first."""
    versions = sorted(definition["spec"]["versions"], key=lambda one: not one.get("storage"))
    stored = versions[0]["name"]
    return tuple(_resource(definition, one, stored) for one in versions if one.get("served") or one is versions[0])


def resources_of_manifest(manifest: Object) -> tuple[Resource, ...]:
    """Return the resources of the manifest of a definition; none if the server would reject it."""
    if not is_shallow(manifest):
        return ()
    definition, report = copy.deepcopy(manifest), Report()
    structs()[openapi_name("apiextensions.k8s.io/v1", "CustomResourceDefinition")].check(definition, "", report)
    if report.wrong or report.invalid:
        return ()
    definitions.default(definition)
    return () if next(definitions.validate(definition), None) else resources_of(definition)


def _resource(definition: Object, version: Object, stored: str) -> Resource:
    spec, names = definition["spec"], definition["spec"]["names"]
    group, subresources = spec["group"], version.get("subresources", {})
    api_version = f"{group}/{version['name']}"
    schema = version["schema"]["openAPIV3Schema"]
    fields = dict.fromkeys(
        one["jsonPath"].lstrip(".") for other in spec["versions"] for one in other.get("selectableFields", ())
    )
    scale = subresources.get("scale", {})
    conversion = None
    if version["name"] != stored:
        conversion = Conversion(partial(_renamed, f"{group}/{stored}"), partial(_renamed, api_version))
    resource = Resource(
        api_version,
        " ".join((names["kind"], names["plural"], *names.get("shortNames", ()))),
        " ".join(name for name in ("status", "scale") if name in subresources),
        cluster=spec["scope"] == "Cluster",
        generation=True,
        categories=tuple(names.get("categories", ())),
        selectable=" ".join(fields),
        rules=Rules(
            lambda obj: _default(obj, schema),
            drop_status if "status" in subresources else lambda _: None,
            validate=lambda obj: _validate(obj, schema),
            validate_status=lambda obj, _: _validate(obj, schema),
            validate_last=lambda new, old: rule_violations(new, old, schema, root=True),
        ),
        columns=_columns(version.get("additionalPrinterColumns")),
        conversion=conversion,
        scale=Scale(*(_keys(scale.get(f"{part}Path", "")) for part in _SCALE)),
        schema=Custom(group, version["name"], names["kind"], schema),
    )
    resource.singular = names.get("singular", resource.singular)
    resource.list_kind = names.get("listKind", resource.list_kind)
    resource.served = bool(version.get("served"))
    if version.get("deprecated"):
        resource.deprecation = version.get("deprecationWarning") or f"{api_version} {names['kind']} is deprecated"
    return resource


def _renamed(api_version: str, obj: Object) -> Object:
    obj["apiVersion"] = api_version
    return obj


def _keys(path: str) -> tuple[str, ...]:
    return tuple(key for key in path.split(".") if key)


def _default(obj: Object, schema: Object) -> None:
    metadata = obj.get("metadata")
    set_defaults(obj, schema)
    obj["metadata"] = metadata


def _validate(obj: Object, schema: Object) -> Iterator[Cause]:
    body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    own = {**schema, "required": [one for one in schema.get("required", ()) if one not in obj]}
    yield from value_errors(body, own, "")


def _columns(given: list[Object] | None) -> Columns:
    if not given:
        return (NAME, AGE)
    return (NAME, *(_column(one) for one in given))


def _column(given: Object) -> Column:
    kind = given.get("type", "string")
    value = paths.reader(given["jsonPath"])

    def cell(obj: Object) -> Any:
        found = value(obj)
        if kind == "date":
            return cells.age(found) if isinstance(found, str) else "<unknown>"
        if found is None:
            return None if kind in ("integer", "number", "boolean") else ""
        return found if isinstance(found, str | int | float) else as_json(found)

    return Column(
        given["name"], cell, bool(given.get("priority", 0)), kind, given.get("format", ""), given.get("description", "")
    )
