"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies: a binding enables a policy for the writes it matches.

For each matching binding, and for each parameter object that it names, the expressions are evaluated. An expression
that fails to evaluate denies the write, unless the failure policy is Ignore.
"""

from collections.abc import Iterator
from typing import Any

from kubestow.api.cel import CelError
from kubestow.apiserver.admission.conditions import Context
from kubestow.apiserver.admission.scopes import Scope, with_variables
from kubestow.apiserver.admission.writes import GROUP, Object, Write, match_resource
from kubestow.apiserver.errors import ApiError, forbidden
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.store import Store

_CODES = {"Invalid": 422, "Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_MAX_MESSAGE_LENGTH = 5 * 1024
_MAX_ANNOTATION_LENGTH = 10 * 1024


class PolicyError(Exception):
    """A policy that cannot be evaluated; its failure policy decides whether that denies the write."""


def matching_policies(store: Store, kind: str, write: Write) -> Iterator[tuple[Object, Object, Context]]:
    """Yield the policies of a kind that match a write, with their bindings and evaluation contexts."""
    if write.resource.group == GROUP:
        return
    bindings = [record.object() for record in store.collection(f"{kind}bindings.{GROUP}").ordered(None)]
    for record in store.collection(f"{kind[:-1]}ies.{GROUP}").ordered(None) if bindings else ():
        policy = record.object()
        spec = policy["spec"]
        resource = match_resource(spec.get("matchConstraints", {}), write, store)
        if resource is None:
            continue
        scope = Scope(bool(spec.get("paramKind")), makes_objects="mutations" in spec)
        for binding in bindings:
            if binding["spec"].get("policyName") != record.name:
                continue
            if match_resource(binding["spec"].get("matchResources", {}), write, store) is None:
                continue
            namespace = store.get("namespaces", "", write.namespace) if write.resource.namespaced else None
            try:
                scope = with_variables(scope, spec.get("variables", ())) if not scope.variables else scope
                for params in _params(store, spec, binding["spec"], write):
                    sources = {one["name"]: one["expression"] for one in spec.get("variables", ())}
                    shown = namespace.object() if namespace is not None else None
                    context = Context(write, resource, scope, shown, params, sources)
                    if context.applies(spec.get("matchConditions", ())):
                        yield policy, binding, context
            except (PolicyError, CelError) as error:
                if spec.get("failurePolicy") != "Ignore":
                    message = f"failed to configure binding: {error}" if isinstance(error, PolicyError) else str(error)
                    raise _denied(policy, binding, write, message) from error


def _params(store: Store, spec: Object, binding: Object, write: Write) -> list[Object | None]:
    """Return the parameter objects that a binding names; a None if it has no parameters."""
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
    """Raise ApiError if a validating policy denies a write; add warnings and audit annotations to the intent."""
    failures: list[Object] = []
    refusal: ApiError | None = None
    for policy, binding, context in matching_policies(store, "validatingadmissionpolicy", write):
        for index, (reason, message) in enumerate(_evaluate_validations(policy["spec"], context)):
            if not message:
                continue
            actions = binding["spec"].get("validationActions", ())
            if "Deny" in actions:
                refusal = refusal or _denied(policy, binding, write, message, reason)
            if "Warn" in actions:
                where = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
                write.intent.warnings.append(f"Validation failed for ValidatingAdmissionPolicy {where}: {message}")
            if "Audit" in actions:
                names = {"policy": policy["metadata"]["name"], "binding": binding["metadata"]["name"]}
                failures.append(
                    {"message": message, **names, "expressionIndex": index, "validationActions": list(actions)}
                )
        _annotate(policy, context)
    if failures:
        write.intent.annotations["validation.policy.admission.k8s.io/validation_failure"] = failures
    if refusal is not None:
        raise refusal


def _evaluate_validations(spec: Object, context: Context) -> Iterator[tuple[str, str]]:
    """Yield the reason and message of each validation; the message is empty if the validation passes."""
    for one in spec.get("validations", ()):
        try:
            holds = context.evaluate(one["expression"]) is True
        except CelError as error:
            ignored = spec.get("failurePolicy") == "Ignore"
            message = f"expression '{one['expression']}' resulted in error: {error}"
            yield "Invalid", "" if ignored else message
            continue
        yield one.get("reason") or "Invalid", "" if holds else _message(one, context)


def _message(validation: Object, context: Context) -> str:
    if validation.get("messageExpression"):
        try:
            message = context.evaluate(validation["messageExpression"])
        except CelError:
            message = ""
        if isinstance(message, str) and message.strip() and "\n" not in message and len(message) <= _MAX_MESSAGE_LENGTH:
            return message.strip()
    given: str = validation.get("message", "").strip()
    return given or f"failed expression: {validation['expression'].strip()}"


def _annotate(policy: Object, context: Context) -> None:
    for one in policy["spec"].get("auditAnnotations", ()):
        try:
            value = context.evaluate(one["valueExpression"])
        except CelError:
            continue
        if isinstance(value, str) and value.strip():
            key = f"{policy['metadata']['name']}/{one['key']}"
            context.write.intent.annotations[key] = value.strip()[:_MAX_ANNOTATION_LENGTH]


def _denied(policy: Object, binding: Object, write: Write, message: str, reason: str = "Invalid") -> ApiError:
    names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
    message = f"{policy['kind']} {names} denied request: {message}"
    resource = write.resource
    refusal = forbidden(resource.group, resource.plural, write.metadata.get("name", ""), message)
    details: dict[str, Any] = {**(refusal.details or {}), "causes": [{"message": message}]}
    return ApiError(_CODES.get(reason, 422), reason, refusal.message, details=details)
