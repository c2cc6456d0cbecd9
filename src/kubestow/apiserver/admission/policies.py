"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies: a policy acts where a binding puts it in force.

For each binding that matches, and for each object of parameters that it names, the expressions are evaluated. What
fails to evaluate refuses the write, unless the policy is to be ignored when it fails.
"""

from collections.abc import Iterator
from typing import Any

from kubestow.api.cel import CelError
from kubestow.apiserver.admission.conditions import Asking
from kubestow.apiserver.admission.scopes import Scope, declared
from kubestow.apiserver.admission.writes import GROUP, Object, Write, matched
from kubestow.apiserver.errors import ApiError, forbidden
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.store import Store

_CODES = {"Invalid": 422, "Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024


class PolicyError(Exception):
    """A policy that cannot do its work; whether that refuses the write is for the policy to say."""


def in_force(store: Store, kind: str, write: Write) -> Iterator[tuple[Object, Object, Asking]]:
    """Policies of a kind with the bindings by which they are about a write, and how to ask them."""
    if write.resource.group == GROUP:
        return
    bindings = [record.object() for record in store.collection(f"{kind}bindings.{GROUP}").ordered(None)]
    for record in store.collection(f"{kind[:-1]}ies.{GROUP}").ordered(None) if bindings else ():
        policy = record.object()
        spec = policy["spec"]
        resource = matched(spec.get("matchConstraints", {}), write, store)
        if resource is None:
            continue
        scope = Scope(bool(spec.get("paramKind")), makes_objects="mutations" in spec)
        for binding in bindings:
            if binding["spec"].get("policyName") != record.name:
                continue
            if matched(binding["spec"].get("matchResources", {}), write, store) is None:
                continue
            namespace = store.get("namespaces", "", write.namespace) if write.resource.namespaced else None
            try:
                scope = declared(scope, spec.get("variables", ())) if not scope.variables else scope
                for params in _params(store, spec, binding["spec"], write):
                    sources = {one["name"]: one["expression"] for one in spec.get("variables", ())}
                    shown = namespace.object() if namespace is not None else None
                    asking = Asking(write, resource, scope, shown, params, sources)
                    if asking.applies(spec.get("matchConditions", ())):
                        yield policy, binding, asking
            except (PolicyError, CelError) as error:
                if spec.get("failurePolicy") != "Ignore":
                    told = f"failed to configure binding: {error}" if isinstance(error, PolicyError) else str(error)
                    raise _denied(policy, binding, write, told) from error


def _params(store: Store, spec: Object, binding: Object, write: Write) -> list[Object | None]:
    """The objects of parameters that a binding names; one that is nothing if it needs none."""
    kind, reference = spec.get("paramKind"), binding.get("paramRef")
    if not kind or not reference:
        return [None]
    resource = store.registry.by_kind.get((kind.get("apiVersion", ""), kind.get("kind", "")))
    if resource is None:
        raise PolicyError(f"failed to find resource referenced by paramKind: '{kind}'")
    namespace = ""
    if resource.namespaced:
        namespace = reference.get("namespace") or write.namespace
        if not namespace:
            raise PolicyError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    found = store.collection(resource.storage).ordered(namespace or None)
    if reference.get("name"):
        found = [one for one in found if one.name == reference["name"]]
    elif (selector := from_object(reference.get("selector"))) is not None:
        found = [one for one in found if selector.matches(one.labels)]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise PolicyError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [one.object() for one in found]


def review(store: Store, write: Write) -> None:
    """Refuses what a validating policy refuses; warnings and annotations go to the write's author and auditor."""
    failures: list[Object] = []
    refusal: ApiError | None = None
    for policy, binding, asking in in_force(store, "validatingadmissionpolicy", write):
        for index, (reason, told) in enumerate(_judged(policy["spec"], asking)):
            if not told:
                continue
            actions = binding["spec"].get("validationActions", ())
            if "Deny" in actions:
                refusal = refusal or _denied(policy, binding, write, told, reason)
            if "Warn" in actions:
                where = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
                write.intent.warnings.append(f"Validation failed for ValidatingAdmissionPolicy {where}: {told}")
            if "Audit" in actions:
                names = {"policy": policy["metadata"]["name"], "binding": binding["metadata"]["name"]}
                failures.append(
                    {"message": told, **names, "expressionIndex": index, "validationActions": list(actions)}
                )
        _annotate(policy, asking)
    if failures:
        write.intent.annotations["validation.policy.admission.k8s.io/validation_failure"] = failures
    if refusal is not None:
        raise refusal


def _judged(spec: Object, asking: Asking) -> Iterator[tuple[str, str]]:
    """For each validation the reason and the message of its refusal; an empty message if there is none."""
    for one in spec.get("validations", ()):
        try:
            holds = asking.evaluate(one["expression"]) is True
        except CelError as error:
            ignored = spec.get("failurePolicy") == "Ignore"
            told = f"expression '{one['expression']}' resulted in error: {error}"
            yield "Invalid", "" if ignored else told
            continue
        yield one.get("reason") or "Invalid", "" if holds else _message(one, asking)


def _message(validation: Object, asking: Asking) -> str:
    if validation.get("messageExpression"):
        try:
            told = asking.evaluate(validation["messageExpression"])
        except CelError:
            told = ""
        if isinstance(told, str) and told.strip() and "\n" not in told and len(told) <= _LONGEST_MESSAGE:
            return told.strip()
    given: str = validation.get("message", "").strip()
    return given or f"failed expression: {validation['expression'].strip()}"


def _annotate(policy: Object, asking: Asking) -> None:
    for one in policy["spec"].get("auditAnnotations", ()):
        try:
            value = asking.evaluate(one["valueExpression"])
        except CelError:
            continue
        if isinstance(value, str) and value.strip():
            key = f"{policy['metadata']['name']}/{one['key']}"
            asking.write.intent.annotations[key] = value.strip()[:_LONGEST_ANNOTATION]


def _denied(policy: Object, binding: Object, write: Write, told: str, reason: str = "Invalid") -> ApiError:
    names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
    message = f"{policy['kind']} {names} denied request: {told}"
    resource = write.resource
    refusal = forbidden(resource.group, resource.plural, write.metadata.get("name", ""), message)
    details: dict[str, Any] = {**(refusal.details or {}), "causes": [{"message": message}]}
    return ApiError(_CODES.get(reason, 422), reason, refusal.message, details=details)
