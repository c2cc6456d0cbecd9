"""CEL rules of custom resources: compiled with the definition, evaluated for every write."""

import copy
from typing import Any

import pytest

from kubestow.apiserver.custom.expressions import rule_errors, rule_violations
from support.apiserver.crontabs import CRONTABS, DEFINITIONS, V1, define, definition
from support.apiserver.running import Client, Running

INTEGERS = {"type": "array", "items": {"type": "integer"}}


def ruled(*rules: Any, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with rules, each an expression or a full rule."""
    full = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {"type": "object", "properties": properties, "x-kubernetes-validations": full}


def messages(value: Any, schema: dict[str, Any], old: Any = None) -> list[str]:
    """Return the errors of a value as messages."""
    return [f"{field}: {message}" for field, _, message in rule_violations(value, old, schema)]


def complaints(schema: dict[str, Any]) -> str:
    """Return the errors of a schema's rules."""
    return "\n".join(f"{field}: {message}" for field, _, message in rule_errors(schema, "schema", 1))


def test_a_broken_rule_is_reported() -> None:
    """An object that meets the rule has no error."""
    schema = ruled("self.x + self.y > 0", x={"type": "integer"}, y={"type": "integer"})
    assert messages({"x": 1, "y": 0}, schema) == []
    assert messages({"x": 0, "y": 0}, schema) == ["<nil>: Invalid value: failed rule: self.x + self.y > 0"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"message": "too few"}, "spec: Invalid value: 1: too few"),
        ({"messageExpression": "'got ' + string(self)"}, "spec: Invalid value: 1: got 1"),
        ({"messageExpression": "''", "message": "too few"}, "spec: Invalid value: 1: too few"),
        ({"messageExpression": "string(1 / (self - 1))", "message": "too few"}, "spec: Invalid value: 1: too few"),
        ({"reason": "FieldValueForbidden", "message": "no"}, "spec: Forbidden: no"),
        ({"reason": "FieldValueRequired", "message": "no"}, "spec: Required value: no"),
        ({"reason": "FieldValueDuplicate", "message": "no"}, "spec: Duplicate value: 1: no"),
    ],
)
def test_a_rule_defines_its_message(rule: dict[str, str], expected: str) -> None:
    """Message, message expression and reason; the default is the rule itself."""
    number = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", **rule}]}
    assert messages({"spec": 1}, {"type": "object", "properties": {"spec": number}}) == [expected]


def test_a_rule_may_point_at_a_field() -> None:
    """With fieldPath the error names a field below."""
    schema = ruled({"rule": "self.x > 1", "fieldPath": ".x"}, x={"type": "integer"})
    below = {"type": "object", "properties": {"spec": schema}}
    assert messages({"spec": {"x": 1}}, below) == ["spec.x: Invalid value: failed rule: self.x > 1"]


def test_fields_have_types_in_rules() -> None:
    """Times, durations, bytes and numbers; null is absent; names are escaped."""
    schema = ruled(
        "self.start + self.span < self.end",
        "size(self.data) == 2",
        "self.half * 2.0 == 3.0",
        "!has(self.gone)",
        "self.a__dash__b == self.__in__",
        "self.port == 80 || self.port == 'http'",
        "self.limits.all(k, self.limits[k] > 0)",
        start={"type": "string", "format": "date"},
        end={"type": "string", "format": "date-time"},
        span={"type": "string", "format": "duration"},
        data={"type": "string", "format": "byte"},
        half={"type": "number"},
        gone={"type": "string", "nullable": True},
        port={"x-kubernetes-int-or-string": True},
        limits={"type": "object", "additionalProperties": {"type": "integer"}},
        **{"a-b": {"type": "integer"}, "in": {"type": "integer"}},
    )
    value = {"start": "2026-01-01", "end": "2026-01-02T00:00:00Z", "span": "1h", "data": "AAA=", "half": 1.5}
    value |= {"gone": None, "a-b": 3, "in": 3, "port": "http", "limits": {"a": 1}}
    assert complaints(schema) == ""
    assert messages(value, schema) == []


def test_transition_rules_compare_with_the_old_value() -> None:
    """By field, map key and list keys; evaluated only if there is one, unless optional."""
    number = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    items = {"type": "object", "properties": {"name": {"type": "string"}, "n": number}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items}
    always = {"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": True}
    fixed = {"type": "string", "x-kubernetes-validations": [always]}
    schema = {"type": "object", "properties": {"list": keyed, "free": INTEGERS | {"items": number}, "fixed": fixed}}
    old = {"list": [{"name": "a", "n": 3}, {"name": "b", "n": 1}], "free": [9], "fixed": "x"}
    new = {"list": [{"name": "b", "n": 2}, {"name": "a", "n": 2}], "free": [1], "fixed": "y"}
    assert messages(new, schema) == []
    fields = [line.partition(":")[0] for line in messages(new, schema, old)]
    assert fields == ["list[1].n", "fixed"]


def test_unchanged_values_are_not_validated_again() -> None:
    """An object that violates a newer rule can still be updated in other fields."""
    schema = {"type": "object", "properties": {"spec": ruled("self.x > 1", x={"type": "integer"})}}
    old = {"spec": {"x": 1}}
    assert messages({"spec": {"x": 1}, "other": 1}, schema, old) == []
    assert messages({"spec": {"x": 0}}, schema, old) != []


def test_an_evaluation_error_rejects_the_object() -> None:
    """A missing key, mismatched types, and exceeded cost are reported."""
    schema = ruled("self.x > 1", "self.any > 1", x={"type": "integer"}, any={"x-kubernetes-int-or-string": True})
    missing, unfit = messages({"any": "text"}, schema)
    assert missing == '<nil>: Invalid value: "object": no such key: x evaluating rule: self.x > 1'
    assert "did not match a supported operator" in unfit
    pairs = ruled("self.n.all(x, self.n.all(y, x == y))", n=INTEGERS | {"maxItems": 725})
    assert "call cost exceeds limit" in messages({"n": [20] * 725}, pairs)[0]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("self.z == 100", "undefined field 'z'"),
        ("self = 42", "Syntax error"),
        ("self.x", "must evaluate to a bool"),
        (" ", "rule is not specified"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
    ],
)
def test_a_rule_that_does_not_compile_is_rejected(rule: Any, expected: str) -> None:
    """The error contains the position in the rule."""
    assert expected in complaints(ruled(rule, x={"type": "integer"}))


@pytest.mark.parametrize("bound", [{}, {"maxItems": 3000}])
def test_a_rule_that_is_too_expensive_is_rejected(bound: dict[str, int]) -> None:
    """The estimate uses the sizes in the schema: nested loops over unlimited lists exceed it."""
    nested = ruled("self.n.all(x, self.n.all(y, x == y))", n=INTEGERS | bound)
    assert "estimated rule cost exceeds budget" in complaints(nested)
    bounded = ruled("self.n.all(x, self.n.all(y, x == y))", n=INTEGERS | {"maxItems": 700})
    assert complaints(bounded) == ""


def test_the_server_rejects_definitions_and_objects(plane: Running) -> None:
    """It compiles rules, estimates their cost, and evaluates them for objects."""
    version: Any = copy.deepcopy(V1)
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "self.replicas <= 5", "message": "no more than five"}]
    client = define(plane, version)
    body = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}}
    status, rejected = client.call("POST", CRONTABS, {**body, "spec": {"schedule": "* * * * *", "replicas": 6}})
    assert (status, rejected["message"]) == (
        422,
        'CronTab.stable.example.com "a" is invalid: spec: Invalid value: no more than five',
    )
    assert client.call("POST", CRONTABS, {**body, "spec": {"schedule": "* * * * *"}})[0] == 201
    inner: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    inner["x-kubernetes-validations"] = [{"rule": "self.all(s, s == 'x')"}]
    spec["properties"]["rows"] = {"type": "array", "items": inner}
    status, rejected = client.call("POST", f"{DEFINITIONS}?dryRun=All", definition(version))
    assert status == 422
    assert "exceeds budget by more than 100x" in rejected["message"]


def test_a_schema_of_values_must_be_a_schema(client: Client) -> None:
    """Where the API accepts a schema or a boolean, other values are rejected with their path."""
    version: Any = copy.deepcopy(V1)
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["limits"]["additionalProperties"] = {"type": ["string"]}
    status, rejected = client.call("POST", DEFINITIONS, definition(version))
    assert status == 422
    place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[limits].additionalProperties.type"
    assert [one["field"] for one in rejected["details"]["causes"]] == [place]
