"""What MutatingAdmissionPolicies make of an object: they apply a configuration to it, or a JSON patch.

Policies act in the order of their names, each on what the one before left. One that wants to be asked again if needed
is asked a second time when the object has changed since.
"""

import copy
from typing import Any

from kubestow.api.cel import CelError
from kubestow.api.cel.values import text_of
from kubestow.apiserver.admission.conditions import Asking
from kubestow.apiserver.admission.policies import in_force
from kubestow.apiserver.admission.writes import Object, Write
from kubestow.apiserver.errors import ApiError, forbidden
from kubestow.apiserver.patches import json_patch
from kubestow.apiserver.patches.server_apply import merge_struct
from kubestow.apiserver.store.store import Store

KIND = "mutatingadmissionpolicy"


def mutate(store: Store, write: Write) -> bool:
    """Has policies change the new object; whether one did."""
    assert write.new is not None
    before = copy.deepcopy(write.new)
    left: dict[str, Object] = {}
    """What the object was like after each policy that wants to be asked again."""
    for policy, binding, asking in in_force(store, KIND, write):
        _act(policy, binding, asking)
        if policy["spec"].get("reinvocationPolicy") == "IfNeeded":
            left[policy["metadata"]["name"]] = copy.deepcopy(write.new)
    if left:
        for policy, binding, asking in in_force(store, KIND, write):
            if left.get(policy["metadata"]["name"], write.new) != write.new:
                _act(policy, binding, asking)
    return write.new != before


def _act(policy: Object, binding: Object, asking: Asking) -> None:
    write = asking.write
    for one in policy["spec"].get("mutations", ()):
        # Each sees what the one before left.
        now = Asking(write, asking.resource, asking.scope, asking.namespace, asking.params, asking.sources)
        try:
            _change(one, now)
        except (CelError, ApiError) as error:
            if policy["spec"].get("failurePolicy") != "Ignore":
                raise _failed(policy, binding, write, error) from error


def _change(mutation: Object, asking: Asking) -> None:
    write = asking.write
    assert write.new is not None
    if mutation.get("patchType") == "JSONPatch":
        patch = plain(asking.evaluate(mutation["jsonPatch"]["expression"]))
        changed = json_patch.apply(copy.deepcopy(write.new), patch)
    else:
        applied = plain(asking.evaluate(mutation["applyConfiguration"]["expression"]))
        changed = copy.deepcopy(write.new)
        if isinstance(applied, dict):
            merge_struct(changed, applied, asking.resource.schema)
    write.new.clear()
    write.new.update(changed)


def _failed(policy: Object, binding: Object, write: Write, error: Exception) -> ApiError:
    names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
    told = f"policy {names} denied request: {error}"
    return forbidden(write.resource.group, write.resource.plural, write.metadata.get("name", ""), told)


def plain(value: Any) -> Any:
    """A value of CEL as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, bool | str | float):
        return value
    return int(value) if isinstance(value, int) else text_of(value)
