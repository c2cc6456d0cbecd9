"""Binding of a pod to a node: a pod is bound once, while it is not being deleted, not gated, and its UID matches."""

from typing import Any

from kubestow.apiserver import errors
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.rules.causes import invalid, required
from kubestow.apiserver.rules.pods import set_condition
from kubestow.apiserver.store.store import Store


def bind(store: Store, namespace: str, name: str, binding: dict[str, Any], intent: Intent) -> None:
    """Bind a pod to the target of a Binding. Raises ApiError if the pod cannot be bound."""
    target = binding.get("target", {})
    node = target.get("name", "")
    if not node:
        raise errors.invalid("", "Binding", name, [required("target.name")])
    if target.get("kind", "Node") not in ("", "Node", "Minion"):
        raise errors.invalid("", "Binding", name, [invalid("target.kind", target["kind"], "only Node can be bound to")])
    metadata = binding.get("metadata", {})
    if metadata.get("name", name) not in ("", name):
        raise errors.bad_request(f'metadata.name is "{metadata["name"]}", the name in the path is "{name}"')
    current = store.get("pods", namespace, name)
    if current is None:
        raise errors.not_found("", "pods", name)
    uid = metadata.get("uid")
    if uid and uid != current.uid:
        raise errors.failed_precondition("", "pods", name, "UID", uid, current.uid)
    version = metadata.get("resourceVersion")
    if version and version != str(current.rv):
        raise errors.outdated("", "pods", name)
    pod = current.object()
    if "deletionTimestamp" in pod["metadata"]:
        raise _rejection(name, f"pod {name} is being deleted, cannot be assigned to a host")
    bound = pod["spec"].get("nodeName")
    if bound:
        raise _rejection(name, f'pod {name} is already assigned to node "{bound}"')
    if pod["spec"].get("schedulingGates"):
        raise _rejection(name, f"pod {name} has non-empty .spec.schedulingGates")
    if intent.dry_run:
        return
    pod["spec"]["nodeName"] = node
    for key in ("annotations", "labels"):
        if metadata.get(key):
            pod["metadata"].setdefault(key, {}).update(metadata[key])
    # The nomination is no longer needed, and would keep reserving capacity on the nominated node.
    pod.get("status", {}).pop("nominatedNodeName", None)
    set_condition(pod, "PodScheduled", "True", store.now())
    store.put("pods", pod)


def _rejection(name: str, why: str) -> ApiError:
    return errors.conflict("", "pods/binding", name, why)
