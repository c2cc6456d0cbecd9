"""Rules for CustomResourceDefinitions: consistent names, exactly one stored version, structural schemas."""

from collections.abc import Iterator
from typing import Any

from kubestow.api.cel.library import regex
from kubestow.apiserver.custom import expressions, values
from kubestow.apiserver.custom.costs import max_items
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.printing import paths
from kubestow.apiserver.rules.causes import check_choice, forbidden, invalid, required
from kubestow.apiserver.rules.names import INVALID, check_name, dns_label, dns_subdomain
from kubestow.apiserver.schema.reader import structs
from kubestow.apiserver.schema.types import Report

Object = dict[str, Any]
_MAX_DEPTH = 64
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def default(obj: Object) -> None:
    """Set the default names and conversion strategy."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


def prepare(obj: Object) -> None:
    """Set the initial status: no accepted names, and the stored version."""
    stored = [one.get("name", "") for one in obj["spec"].get("versions", ()) if one.get("storage")]
    obj["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def add_stored_version(new: Object, old: Object) -> None:
    """Add the stored version to the list of all versions in which objects may be stored."""
    status = {**old.get("status", {})}
    stored = [one.get("name", "") for one in new["spec"].get("versions", ()) if one.get("storage")]
    status["storedVersions"] = list(dict.fromkeys([*status.get("storedVersions", ()), *stored]))
    new["status"] = status


def validate(obj: Object) -> Iterator[Cause]:
    """Yield the errors of a definition."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    names, versions = spec.get("names", {}), spec.get("versions", [])
    plural, group = names.get("plural", ""), spec.get("group", "")
    if name != f"{plural}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    yield from check_name("spec.group", group, dns_subdomain)
    yield from check_choice(spec.get("scope", ""), ("Cluster", "Namespaced"), "spec.scope")
    if spec.get("preserveUnknownFields"):
        yield invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    if spec.get("conversion", {}).get("strategy") == "Webhook":
        yield forbidden("spec.conversion.strategy", "this server does not call webhooks; use None")
    for part, text in (("plural", plural), ("singular", names.get("singular", "")), ("kind", names.get("kind", ""))):
        if not text:
            yield required(f"spec.names.{part}")
        else:
            yield from check_name(f"spec.names.{part}", text.lower() if part == "kind" else text, dns_label)
    if sum(1 for one in versions if one.get("storage")) != 1:
        yield "spec.versions", INVALID, "Invalid value: must have exactly one version marked as storage version"
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from check_name(f"{path}.name", version.get("name", ""), dns_label)
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            yield required(f"{path}.schema.openAPIV3Schema", "schemas are required")
        else:
            yield from _wrong_schema(schema, f"{path}.schema.openAPIV3Schema", "at the root")
        for number, column in enumerate(version.get("additionalPrinterColumns", ())):
            try:
                paths.reader(column.get("jsonPath", ""))
            except ValueError as error:
                yield invalid(f"{path}.additionalPrinterColumns[{number}].jsonPath", column["jsonPath"], str(error))


def _wrong_schema(schema: Object, path: str, where: str, depth: int = 0, runs: float = 1) -> Iterator[Cause]:
    if depth > _MAX_DEPTH:
        yield forbidden(path, f"must not be nested more than {_MAX_DEPTH} levels deep")
        return
    kind, preserve = schema.get("type", ""), schema.get("x-kubernetes-preserve-unknown-fields")
    untyped = schema.get("x-kubernetes-int-or-string") or preserve
    if not kind and not untyped:
        yield required(f"{path}.type", f"must not be empty {where}")
    if depth == 0 and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    if kind == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if "pattern" in schema:
        try:
            regex.compiled(schema["pattern"])
        except ValueError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield f"{path}.pattern", INVALID, f'Invalid value: "{schema["pattern"]}": {why}'
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        why = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.x-kubernetes-list-map-keys", why)
    if "default" in schema:
        for _, _, message in values.value_errors(schema["default"], schema, "default"):
            yield f"{path}.default", INVALID, f"Invalid value: {values.as_json(schema['default'])}: {message}"
    below = list(_wrong_below(schema, path, depth + 1, runs))
    yield from below or expressions.rule_errors(schema, path, runs, root=depth == 0)


def _wrong_below(schema: Object, path: str, depth: int, runs: float) -> Iterator[Cause]:
    for name, inner in schema.get("properties", {}).items():
        if depth > 1 or name != "metadata":
            yield from _wrong_schema(inner, f"{path}.properties[{name}]", "for specified object fields", depth, runs)
    if "items" in schema:
        more = runs * max_items(schema)
        yield from _wrong_schema(schema["items"], f"{path}.items", "for specified array items", depth, more)
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict):
        path = f"{path}.additionalProperties"
        # The field can also be a boolean, so the schema check has not validated its content yet.
        report = Report()
        structs()[_SCHEMA].check(inner, path, report)
        if report.wrong:
            yield from ((field, INVALID, f"Invalid value: {what}") for field, what in report.wrong)
        else:
            more = runs * max_items(schema)
            yield from _wrong_schema(inner, path, "for specified object fields", depth, more)


def keep_identity(new: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of an update that changes immutable names, or removes versions that may be stored."""
    accepted = old.get("status", {}).get("acceptedNames", {})
    for part in ("group", "scope"):
        if new["spec"].get(part) != old["spec"].get(part):
            yield f"spec.{part}", INVALID, "Invalid value: field is immutable"
    for part in ("plural", "kind"):
        if accepted.get(part) and new["spec"]["names"].get(part) != accepted[part]:
            yield f"spec.names.{part}", INVALID, "Invalid value: field is immutable"
    left = {one.get("name", "") for one in new["spec"].get("versions", ())}
    for index, version in enumerate(old.get("status", {}).get("storedVersions", ())):
        if version not in left:
            message = f'Invalid value: "{version}": must appear in spec.versions'
            yield f"status.storedVersions[{index}]", INVALID, message
