"""Type checking of policies against the kinds they match."""

from typing import Any

import pytest

from kubestow.apiserver.controllers.policy_types import mismatch
from kubestow.apiserver.custom.structure import Custom
from kubestow.apiserver.kinds.resource import Resource
from support.apiserver.world import World

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"

pytestmark = pytest.mark.world(nodes=0)


def checked(world: World, *validations: dict[str, str], resource: str = "deployments", **spec: Any) -> list[Any]:
    """Return the warnings in the status of a policy for a kind of apps/v1."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}
    match = {"matchConstraints": {"resourceRules": [rule]}}
    world.create(POLICIES, "p", {**match, "validations": list(validations), **spec})
    world.run(1)
    status = world.status(POLICIES, "p")
    assert status["observedGeneration"] == 1
    found: list[Any] = status["typeChecking"].get("expressionWarnings", [])
    return found


def test_correct_expressions_have_no_warnings(world: World) -> None:
    """Fields of all types, variables, and untyped values."""
    fitting = (
        "object.spec.replicas > 1 && has(object.metadata.labels) && object.metadata.labels['a'] == 'b'",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('x') && variables.n > 0)",
        "oldObject == null || object.spec.strategy.rollingUpdate.maxSurge != 1",
    )
    variables = [{"name": "n", "expression": "object.spec.replicas"}]
    assert checked(world, *({"expression": one} for one in fitting), variables=variables) == []


def test_type_errors_are_reported(world: World) -> None:
    """For the expression and its message, with the message of the compiler."""
    confused = {"expression": "object.spec.replicas > '1'", "messageExpression": "'got ' + object.spec.replicas"}
    first, second = checked(world, confused)
    assert (first["fieldRef"], second["fieldRef"]) == (
        "spec.validations[0].expression",
        "spec.validations[0].messageExpression",
    )
    assert first["warning"].startswith("apps/v1, Kind=Deployment: ")
    assert "found no matching overload for '_>_' applied to '(int, string)'" in first["warning"]
    assert "found no matching overload for '_+_' applied to '(string, int)'" in second["warning"]


def test_an_unknown_field_is_reported(world: World) -> None:
    """With its name; a policy that matches any kind is not checked."""
    (warning,) = checked(world, {"expression": "object.spec.maxRetries < 10"})
    assert "undefined field 'maxRetries'" in warning["warning"]
    other = World(nodes=0)
    assert checked(other, {"expression": "object.spec.maxRetries < 10"}, resource="*") == []


def test_custom_kinds_have_types_too() -> None:
    """From their schema, with all metadata; a kind that preserves unknown fields is not checked."""
    spec = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    closed = Custom("example.com", "v1", "Thing", {"type": "object", "properties": {"spec": spec}})
    open_ = Custom("example.com", "v1", "Thing", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    for schema, source, fits in (
        (closed, "object.spec.replicas > 1 && 'a' in object.metadata.labels", True),
        (closed, "object.spec.replicas > '1'", False),
        (closed, "object.spec.maxRetries > 1", False),
        (open_, "object.spec.maxRetries > 1", True),
    ):
        resource = Resource("example.com/v1", "Thing things", schema=schema)
        assert (mismatch({}, source, resource) == "") is fits, source
