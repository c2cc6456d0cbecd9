"""The table of subresources, by name."""

from types import MappingProxyType

from kubestow.apiserver.kinds.resource import Object, Part, Resource, Subresource
from kubestow.apiserver.rules.pods import validate_resize


def _status(new: Object, old: Object, resource: Resource) -> Object:
    merged = {key: value for key, value in old.items() if key != "status"}
    if "status" in new or not resource.is_custom:
        merged["status"] = new.get("status", {})
    # For most resources, metadata may change along with the status, as in kube-apiserver.
    kept = resource.kept_with_status
    if kept is None:
        merged["metadata"] = dict(old["metadata"])
        return merged
    merged["metadata"] = metadata = dict(new["metadata"])
    for key in kept:
        metadata.pop(key, None)
        if key in old["metadata"]:
            metadata[key] = old["metadata"][key]
    return merged


def _spec(new: Object, old: Object, _: Resource) -> Object:
    return {**old, "spec": new.get("spec", {}), "metadata": dict(old["metadata"])}


def _ephemeral(new: Object, old: Object, _: Resource) -> Object:
    added = new.get("spec", {}).get("ephemeralContainers", [])
    return {**old, "spec": {**old["spec"], "ephemeralContainers": added}, "metadata": dict(old["metadata"])}


def _conditions(new: Object, old: Object, _: Resource) -> Object:
    status = {**old.get("status", {}), "conditions": new.get("status", {}).get("conditions", [])}
    return {**old, "status": status, "metadata": new["metadata"]}


_ENTER = ("create", "get")

SUBRESOURCES: MappingProxyType[str, Subresource] = MappingProxyType(
    {
        "status": Subresource(Part(_status, has_rules=False)),
        "finalize": Subresource(Part(_spec), verbs=("update",)),
        "resize": Subresource(Part(_spec, validate_update=validate_resize)),
        "ephemeralcontainers": Subresource(Part(_ephemeral)),
        "approval": Subresource(Part(_conditions, has_rules=False)),
        "scale": Subresource(gvk=("autoscaling", "v1", "Scale")),
        "binding": Subresource(gvk=("", "v1", "Binding"), verbs=("create",)),
        "eviction": Subresource(gvk=("policy", "v1", "Eviction"), verbs=("create",)),
        "token": Subresource(gvk=("authentication.k8s.io", "v1", "TokenRequest"), verbs=("create",)),
        "log": Subresource(verbs=("get",)),
        "exec": Subresource(gvk=("", "v1", "PodExecOptions"), verbs=_ENTER),
        "attach": Subresource(gvk=("", "v1", "PodAttachOptions"), verbs=_ENTER),
        "portforward": Subresource(gvk=("", "v1", "PodPortForwardOptions"), verbs=_ENTER),
    }
)
