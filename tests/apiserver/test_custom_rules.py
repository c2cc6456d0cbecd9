"""Rules in CEL of custom kinds: compiled with the definition, held against every write."""

import copy
from typing import Any

import pytest

from apiserver.running import Client, Running
from apiserver.test_custom_kinds import CRONTABS, DEFINITIONS, V1, define, definition
from kubestow.apiserver.custom.expressions import broken_rules, wrong_rules

INTEGERS = {"type": "array", "items": {"type": "integer"}}


def ruled(*rules: Any, **properties: Any) -> dict[str, Any]:
    """The schema of an object with rules, each an expression or all of a rule."""
    told = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {"type": "object", "properties": properties, "x-kubernetes-validations": told}


def messages(value: Any, schema: dict[str, Any], old: Any = None) -> list[str]:
    """What is wrong with a value, as its author reads it."""
    return [f"{field}: {message}" for field, _, message in broken_rules(value, old, schema)]


def complaints(schema: dict[str, Any]) -> str:
    """What is wrong with a schema's rules."""
    return "\n".join(f"{field}: {message}" for field, _, message in wrong_rules(schema, "schema", 1))


def test_a_rule_holds_or_says_so() -> None:
    """An object that breaks a rule is told which; one that keeps it is not told anything."""
    schema = ruled("self.x + self.y > 0", x={"type": "integer"}, y={"type": "integer"})
    assert messages({"x": 1, "y": 0}, schema) == []
    assert messages({"x": 0, "y": 0}, schema) == ["<nil>: Invalid value: failed rule: self.x + self.y > 0"]


@pytest.mark.parametrize(
    ("rule", "told"),
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
def test_the_author_of_a_rule_chooses_the_words(rule: dict[str, str], told: str) -> None:
    """Message, message expression and reason are used; the rule itself is told where they give nothing."""
    number = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", **rule}]}
    assert messages({"spec": 1}, {"type": "object", "properties": {"spec": number}}) == [told]


def test_a_rule_may_point_at_a_field() -> None:
    """With fieldPath the field below is named."""
    schema = ruled({"rule": "self.x > 1", "fieldPath": ".x"}, x={"type": "integer"})
    below = {"type": "object", "properties": {"spec": schema}}
    assert messages({"spec": {"x": 1}}, below) == ["spec.x: Invalid value: failed rule: self.x > 1"]


def test_fields_are_seen_with_their_types() -> None:
    """Times, durations, bytes and numbers are such; null is absent; names CEL cannot write are spelled out."""
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


def test_rules_about_changes_compare_with_the_old_value() -> None:
    """They are asked where there is one: by field, by key of a map, by the keys of a list; optional ones always."""
    number = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    items = {"type": "object", "properties": {"name": {"type": "string"}, "n": number}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items}
    always = {"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": True}
    fixed = {"type": "string", "x-kubernetes-validations": [always]}
    schema = {"type": "object", "properties": {"list": keyed, "free": INTEGERS | {"items": number}, "fixed": fixed}}
    old = {"list": [{"name": "a", "n": 3}, {"name": "b", "n": 1}], "free": [9], "fixed": "x"}
    new = {"list": [{"name": "b", "n": 2}, {"name": "a", "n": 2}], "free": [1], "fixed": "y"}
    assert messages(new, schema) == []
    told = [line.partition(":")[0] for line in messages(new, schema, old)]
    assert told == ["list[1].n", "fixed"]


def test_what_did_not_change_is_not_judged_again() -> None:
    """An object that broke a rule before the rule was there can be updated elsewhere."""
    schema = {"type": "object", "properties": {"spec": ruled("self.x > 1", x={"type": "integer"})}}
    old = {"spec": {"x": 1}}
    assert messages({"spec": {"x": 1}, "other": 1}, schema, old) == []
    assert messages({"spec": {"x": 0}}, schema, old) != []


def test_a_rule_without_an_answer_refuses() -> None:
    """A key that is not there, types that do not fit, and work without end are told."""
    schema = ruled("self.x > 1", "self.any > 1", x={"type": "integer"}, any={"x-kubernetes-int-or-string": True})
    missing, unfit = messages({"any": "text"}, schema)
    assert missing == '<nil>: Invalid value: "object": no such key: x evaluating rule: self.x > 1'
    assert "did not match a supported operator" in unfit
    pairs = ruled("self.n.all(x, self.n.all(y, x == y))", n=INTEGERS | {"maxItems": 725})
    assert "call cost exceeds limit" in messages({"n": [20] * 725}, pairs)[0]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("self.z == 100", "undefined field 'z'"),
        ("self = 42", "Syntax error"),
        ("self.x", "must evaluate to a bool"),
        (" ", "rule is not specified"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
    ],
)
def test_a_rule_that_cannot_work_is_not_accepted(rule: Any, told: str) -> None:
    """The definition is refused, with the place in the rule."""
    assert told in complaints(ruled(rule, x={"type": "integer"}))


@pytest.mark.parametrize("bound", [{}, {"maxItems": 3000}])
def test_a_rule_that_may_cost_too_much_is_not_accepted(bound: dict[str, int]) -> None:
    """What sizes allow counts: a loop within a loop over lists without bounds is too much."""
    nested = ruled("self.n.all(x, self.n.all(y, x == y))", n=INTEGERS | bound)
    assert "estimated rule cost exceeds budget" in complaints(nested)
    bounded = ruled("self.n.all(x, self.n.all(y, x == y))", n=INTEGERS | {"maxItems": 700})
    assert complaints(bounded) == ""


def test_definitions_and_objects_are_refused_over_the_wire(plane: Running) -> None:
    """The server compiles rules when a definition comes, counts how often they run, and holds objects against them."""
    version: Any = copy.deepcopy(V1)
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "self.replicas <= 5", "message": "no more than five"}]
    client = define(plane, version)
    body = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}}
    status, refused = client.call("POST", CRONTABS, {**body, "spec": {"schedule": "* * * * *", "replicas": 6}})
    assert (status, refused["message"]) == (
        422,
        'CronTab.stable.example.com "a" is invalid: spec: Invalid value: no more than five',
    )
    assert client.call("POST", CRONTABS, {**body, "spec": {"schedule": "* * * * *"}})[0] == 201
    inner: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    inner["x-kubernetes-validations"] = [{"rule": "self.all(s, s == 'x')"}]
    spec["properties"]["rows"] = {"type": "array", "items": inner}
    status, refused = client.call("POST", f"{DEFINITIONS}?dryRun=All", definition(version))
    assert status == 422
    assert "exceeds budget by more than 100x" in refused["message"]


def test_a_schema_of_values_must_be_a_schema(client: Client) -> None:
    """Where the API takes schemas and truth values alike, what is neither is refused, with its place."""
    version: Any = copy.deepcopy(V1)
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["limits"]["additionalProperties"] = {"type": ["string"]}
    status, refused = client.call("POST", DEFINITIONS, definition(version))
    assert status == 422
    place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[limits].additionalProperties.type"
    assert [one["field"] for one in refused["details"]["causes"]] == [place]
