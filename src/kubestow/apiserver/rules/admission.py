"""Rules for admission policies, their bindings and webhooks: required fields, and CEL expressions that compile."""

import re
from collections.abc import Iterator
from typing import Any

from kubestow.api.cel import CelError
from kubestow.api.cel.types import BOOL, NULL, STRING, Type
from kubestow.apiserver.admission.scopes import Scope, compiled, with_variables
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_choice, check_required, duplicate, forbidden, invalid, required
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.lists import check_new, each
from kubestow.apiserver.rules.names import INVALID

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_ACTIONS = ("Audit", "Deny", "Warn")
_SELECT_ALL: dict[str, Any] = {"namespaceSelector": {}, "objectSelector": {}}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def default_policy(obj: dict[str, Any]) -> None:
    """Set the failure policy to Fail, and selectors that match everything."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _default_match(spec.get("matchConstraints"))


def _default_match(match: dict[str, Any] | None) -> None:
    if match is not None:
        set_missing(match, {"matchPolicy": "Equivalent", **_SELECT_ALL})
        for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
            rule.setdefault("scope", "*")


def default_webhooks(obj: dict[str, Any]) -> None:
    """Set the defaults of webhooks: ten seconds, and denial if the call fails."""
    for hook in obj.get("webhooks", ()):
        set_missing(hook, {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10, **_SELECT_ALL})
        for rule in hook.get("rules", ()):
            rule.setdefault("scope", "*")
        if obj["kind"] == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")


def validate_policy(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the match constraints of a policy, and that its expressions compile."""
    spec = obj["spec"]
    yield from check_choice(spec.get("failurePolicy", "Fail"), ("Fail", "Ignore"), "spec.failurePolicy")
    match = spec.get("matchConstraints")
    if match is None:
        yield required("spec.matchConstraints")
    elif not match.get("resourceRules"):
        yield required("spec.matchConstraints.resourceRules")
    else:
        yield from _check_rules(match["resourceRules"], "spec.matchConstraints.resourceRules")
    kind = spec.get("paramKind")
    if kind is not None:
        yield from check_required(kind, "spec.paramKind", "apiVersion", "kind")
    scope = Scope(kind is not None)
    yield from _check_conditions(spec.get("matchConditions", ()), "spec.matchConditions", scope)
    for path, one in each(spec.get("variables", ()), "spec.variables"):
        if not _NAME.match(one.get("name", "")):
            yield invalid(f"{path}.name", one.get("name", ""), "must be a valid CEL identifier")
        try:
            scope = with_variables(scope, [one])
        except CelError as error:
            yield _not_compiled(f"{path}.expression", one.get("expression", ""), error)
    yield from _check_mutations(spec, scope) if "Mutating" in obj["kind"] else _check_validations(spec, scope)


def _check_validations(spec: dict[str, Any], scope: Scope) -> Iterator[Cause]:
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        for name in ("validations", "auditAnnotations"):
            yield required(f"spec.{name}", "validations or auditAnnotations must contain at least one item")
    for index, one in enumerate(spec.get("validations", ())):
        path, source, message = f"spec.validations[{index}]", one.get("expression", ""), one.get("message", "")
        yield from _check_expression(source, f"{path}.expression", scope, BOOL)
        if one.get("messageExpression"):
            yield from _check_expression(one["messageExpression"], f"{path}.messageExpression", scope, STRING)
        if "\n" in message:
            yield f"{path}.message", INVALID, f"Invalid value: {message!r}: must not contain line breaks"
        elif "\n" in source.strip() and not message:
            yield required(f"{path}.message", "message must be specified if expression contains line breaks")
        yield from check_choice(one.get("reason", "Invalid"), _REASONS, f"{path}.reason")
    for path, one in each(spec.get("auditAnnotations", ()), "spec.auditAnnotations"):
        yield from check_required(one, path, "key")
        yield from _check_expression(one.get("valueExpression", ""), f"{path}.valueExpression", scope, STRING, NULL)


def _check_mutations(spec: dict[str, Any], scope: Scope) -> Iterator[Cause]:
    if not spec.get("mutations"):
        yield required("spec.mutations", "mutations must contain at least one item")
    yield from check_choice(spec.get("reinvocationPolicy", "Never"), ("IfNeeded", "Never"), "spec.reinvocationPolicy")
    makes = Scope(scope.params, scope.variables, makes_objects=True)
    for index, one in enumerate(spec.get("mutations", ())):
        path, kind = f"spec.mutations[{index}]", one.get("patchType", "")
        yield from check_choice(kind, ("ApplyConfiguration", "JSONPatch"), f"{path}.patchType")
        part = "jsonPatch" if kind == "JSONPatch" else "applyConfiguration"
        yield from _check_expression(one.get(part, {}).get("expression", ""), f"{path}.{part}.expression", makes)


def validate_policy_binding(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the policy name, parameters, rules and validation actions of a binding."""
    spec = obj.get("spec", {})
    yield from check_required(spec, "spec", "policyName")
    reference = spec.get("paramRef")
    if reference is not None:
        if bool(reference.get("name")) == ("selector" in reference):
            if reference.get("name"):
                yield forbidden("spec.paramRef.name", "name and selector are mutually exclusive")
            else:
                yield required("spec.paramRef", "one of name or selector must be specified")
        yield from check_required(reference, "spec.paramRef", "parameterNotFoundAction")
    yield from _check_rules(
        spec.get("matchResources", {}).get("resourceRules", ()), "spec.matchResources.resourceRules"
    )
    if "Mutating" in obj["kind"]:
        return
    actions = spec.get("validationActions", ())
    if not actions:
        yield required("spec.validationActions", "at least one validation action is required")
    for index, action in enumerate(actions):
        yield from check_choice(action, _ACTIONS, f"spec.validationActions[{index}]")
    if {"Deny", "Warn"} <= set(actions):
        yield "spec.validationActions", INVALID, "Invalid value: must not contain both Deny and Warn"


def validate_webhooks(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that webhooks have unique names, and exactly one of URL and service."""
    seen: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks", ())):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        if name.count(".") < 2:
            yield invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
        yield from check_new(name, seen, f"{path}.name")
        client = hook.get("clientConfig", {})
        if ("url" in client) == ("service" in client):
            yield required(f"{path}.clientConfig", "exactly one of url or service is required")
        if not client.get("url", "https://").startswith("https://"):
            yield invalid(f"{path}.clientConfig.url", client["url"], "must use https")
        yield from check_choice(hook.get("sideEffects", ""), ("None", "NoneOnDryRun"), f"{path}.sideEffects")
        if not {"v1", "v1beta1"} & set(hook.get("admissionReviewVersions", ())):
            yield required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
        if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            yield invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], why)
        yield from _check_rules(hook.get("rules", ()), f"{path}.rules")
        yield from _check_conditions(hook.get("matchConditions", ()), f"{path}.matchConditions", Scope())


def _check_rules(rules: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    for here, rule in each(rules, path):
        yield from check_required(rule, here, "operations", "apiGroups", "apiVersions", "resources")
        for number, operation in enumerate(rule.get("operations", ())):
            yield from check_choice(operation, _OPERATIONS, f"{here}.operations[{number}]")
        yield from check_choice(rule.get("scope", "*"), ("*", "Cluster", "Namespaced"), f"{here}.scope")


def _check_conditions(conditions: list[dict[str, Any]], path: str, scope: Scope) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, one in enumerate(conditions):
        here, name = f"{path}[{index}]", one.get("name", "")
        if not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        yield from _check_expression(one.get("expression", ""), f"{here}.expression", scope, BOOL)


def _check_expression(source: str, path: str, scope: Scope, *types: Type) -> Iterator[Cause]:
    if not source.strip():
        yield required(path, "expression is not specified")
        return
    try:
        compiled(source, scope, *types)
    except CelError as error:
        yield _not_compiled(path, source, error)


def _not_compiled(path: str, source: str, error: CelError) -> Cause:
    # The message shows the expression with its line breaks.
    return path, INVALID, f'Invalid value: "{source}": {error}'
