"""Fields of new pods that depend on other objects: priority, service account, overhead, tolerations, node selector."""

from typing import Any

from kubestow.apiserver.selectors import parse_label_pairs
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS = 300
_GROUP_NAMES = {"PodGroup": "pod group", "CompositePodGroup": "composite pod group"}
_NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def set_service_account(pod: Object, store: Store) -> str | None:
    """Set the service account, which must exist; that named `default` may be created later."""
    spec = pod["spec"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = pod["metadata"]["namespace"]
    account = store.get("serviceaccounts", namespace, name)
    if account is None:
        if name == "default":
            return None
        return f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
    if b'"imagePullSecrets"' in account.body and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account.object()["imagePullSecrets"]
    return None


def set_priority(pod: Object, store: Store) -> str | None:
    """Set priority and preemption policy from the priority class, or from the default class."""
    spec = pod["spec"]
    chosen = _class_of(spec, store)
    if isinstance(chosen, str):
        return chosen
    value, policy = chosen.get("value", 0), chosen.get("preemptionPolicy", "PreemptLowerPriority")
    for what, key, computed in (("integer", "priority", value), ("string", "preemptionPolicy", policy)):
        given = spec.setdefault(key, computed)
        if given != computed:
            shown = "priority" if key == "priority" else "PreemptionPolicy"
            return (
                f"the {what} value of {shown} ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name"
            )
    return None


def set_group_priority(group: Object, store: Store) -> str | None:
    """Set the priority of a group from its priority class, or from the default class."""
    spec = group["spec"]
    chosen = _class_of(spec, store)
    if isinstance(chosen, str):
        return chosen
    computed = chosen.get("value", 0)
    given = spec.setdefault("priority", computed)
    if given == computed:
        return None
    return (
        f"priority set in the {_GROUP_NAMES[group['kind']]} ({given}) must match the priority computed ({computed}) "
        "based on the priority class set in the spec"
    )


def set_group_preemption_policy(group: Object, store: Store) -> str | None:
    """Set the preemption policy of a group from its priority class, or from the default class."""
    spec = group["spec"]
    chosen = _class_of(spec, store)
    if isinstance(chosen, str):
        return chosen
    computed = chosen.get("preemptionPolicy", "PreemptLowerPriority")
    given = spec.setdefault("preemptionPolicy", computed)
    if given == computed:
        return None
    return (
        f"the string value of PreemptionPolicy ({given}) must not be provided in {_GROUP_NAMES[group['kind']]} spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )


def _class_of(spec: Object, store: Store) -> Object | str:
    """Return the priority class of a spec, or a reason to deny it; without a name, set that of the default class."""
    name = spec.get("priorityClassName", "")
    if name:
        record = store.get(_PRIORITY_CLASSES, "", name)
        return f"no PriorityClass with name {name} was found" if record is None else record.object()
    chosen = _default_class(store) or {}
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    return chosen


def _default_class(store: Store) -> Object | None:
    """Return the default priority class: the one with the lowest value, if there are several."""
    found: Object | None = None
    for record in store.collection(_PRIORITY_CLASSES).objects.values():
        if b'"globalDefault":true' in record.body:
            one = record.object()
            if found is None or one.get("value", 0) < found.get("value", 0):
                found = one
    return found


def add_default_tolerations(pod: Object, _: Store) -> None:
    """Tolerate nodes that are not ready or unreachable for five minutes."""
    tolerations: list[Object] = pod["spec"].get("tolerations", [])
    missing = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for key in _TOLERATED_TAINTS
        if not any(
            one.get("key", "") in (key, "") and one.get("effect", "") in ("NoExecute", "") for one in tolerations
        )
    ]
    if missing:
        pod["spec"]["tolerations"] = tolerations + missing


def set_overhead(pod: Object, store: Store) -> str | None:
    """Set the overhead, node selector and tolerations of the pod's runtime class."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        return _NO_OVERHEAD if spec.get("overhead") else None
    record = store.get(_RUNTIME_CLASSES, "", name)
    if record is None:
        return f'pod rejected: RuntimeClass "{name}" not found'
    runtime = record.object()
    overhead = runtime.get("overhead", {}).get("podFixed")
    if overhead is None and spec.get("overhead"):
        return _NO_OVERHEAD
    if overhead is not None and spec.setdefault("overhead", overhead) != overhead:
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    scheduling = runtime.get("scheduling", {})
    selector = spec.get("nodeSelector", {})
    for key, value in scheduling.get("nodeSelector", {}).items():
        if selector.get(key, value) != value:
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
        spec["nodeSelector"] = selector = {**selector, key: value}
    more = [one for one in scheduling.get("tolerations", ()) if one not in spec.get("tolerations", ())]
    if more:
        spec["tolerations"] = [*spec.get("tolerations", ()), *more]
    return None


def add_namespace_selector(pod: Object, store: Store) -> str | None:
    """Add the node selector in the annotation of the namespace."""
    record = store.get("namespaces", "", pod["metadata"]["namespace"])
    if record is None or _NODE_SELECTOR.encode() not in record.body:
        return None
    wanted = parse_label_pairs(record.object()["metadata"].get("annotations", {}).get(_NODE_SELECTOR, ""))
    selector = pod["spec"].get("nodeSelector", {})
    if any(selector.get(key, value) != value for key, value in wanted.items()):
        return "pod node label selector conflicts with its namespace node label selector"
    if wanted:
        pod["spec"]["nodeSelector"] = {**selector, **wanted}
    return None
