"""MutatingAdmissionPolicies: apply configurations and JSON patches to an object.

Policies run in the order of their names, each on the result of the previous one. A policy with the reinvocation policy
IfNeeded runs a second time if the object has changed since.
"""

import copy
from typing import Any

from kubestow.api.cel import CelError
from kubestow.api.cel.values import text_of
from kubestow.apiserver.admission.conditions import Context
from kubestow.apiserver.admission.policies import matching_policies
from kubestow.apiserver.admission.writes import Object, Write
from kubestow.apiserver.errors import ApiError, forbidden
from kubestow.apiserver.patches import json_patch
from kubestow.apiserver.patches.server_apply import merge_struct
from kubestow.apiserver.store.store import Store

KIND = "mutatingadmissionpolicy"


def mutate(store: Store, write: Write) -> bool:
    """Run the policies on the new object; return whether one changed it."""
    assert write.new is not None
    before = copy.deepcopy(write.new)
    results: dict[str, Object] = {}
    """The object after each policy that may run again, by policy."""
    for policy, binding, context in matching_policies(store, KIND, write):
        _apply_policy(policy, binding, context)
        if policy["spec"].get("reinvocationPolicy") == "IfNeeded":
            results[policy["metadata"]["name"]] = copy.deepcopy(write.new)
    if results:
        for policy, binding, context in matching_policies(store, KIND, write):
            if results.get(policy["metadata"]["name"], write.new) != write.new:
                _apply_policy(policy, binding, context)
    return write.new != before


def _apply_policy(policy: Object, binding: Object, context: Context) -> None:
    write = context.write
    for one in policy["spec"].get("mutations", ()):
        # Each mutation sees the result of the previous one.
        current = Context(write, context.resource, context.scope, context.namespace, context.params, context.sources)
        try:
            _apply_mutation(one, current)
        except (CelError, ApiError) as error:
            if policy["spec"].get("failurePolicy") != "Ignore":
                raise _denied(policy, binding, write, error) from error


def _apply_mutation(mutation: Object, context: Context) -> None:
    write = context.write
    assert write.new is not None
    if mutation.get("patchType") == "JSONPatch":
        patch = to_json(context.evaluate(mutation["jsonPatch"]["expression"]))
        changed = json_patch.apply(copy.deepcopy(write.new), patch)
    else:
        applied = to_json(context.evaluate(mutation["applyConfiguration"]["expression"]))
        changed = copy.deepcopy(write.new)
        if isinstance(applied, dict):
            merge_struct(changed, applied, context.resource.schema)
    write.new.clear()
    write.new.update(changed)


def _denied(policy: Object, binding: Object, write: Write, error: Exception) -> ApiError:
    names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
    message = f"policy {names} denied request: {error}"
    return forbidden(write.resource.group, write.resource.plural, write.metadata.get("name", ""), message)


def to_json(value: Any) -> Any:
    """Convert a CEL value to JSON."""
    if isinstance(value, dict):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [to_json(inner) for inner in value]
    if value is None or isinstance(value, bool | str | float):
        return value
    return int(value) if isinstance(value, int) else text_of(value)
