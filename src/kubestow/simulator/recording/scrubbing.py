"""Removes from recorded objects everything that could be a secret and, on request, replaces names by hashes.

Environment, commands and arguments of containers are removed, as are managed fields and kubectl's copy of the manifest.
Secrets and ConfigMaps are not watched at all. Equal names have equal hashes; messages in statuses, which may contain
any name, are removed when names are hashed.
"""

import hashlib
from typing import Any

_LEFT_OUT = frozenset({"env", "envFrom", "command", "args", "managedFields", "stdin", "lifecycle"})
_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_NAMES = frozenset(
    {
        *(
            "name",
            "generateName",
            "namespace",
            "namespaces",
            "nodeName",
            "nominatedNodeName",
            "claimName",
            "volumeName",
        ),
        *("image", "address", "hostname", "subdomain", "serviceAccount", "serviceAccountName", "storageClassName"),
        *("deviceClassName", "pool", "device", "counterSet", "request", "requests", "requestName"),
        *("resourceClaimName", "resourceClaimTemplateName", "persistentVolumeName", "volumesAttached", "volumesInUse"),
        *("attachedVolume", "providerID", "nodeID"),
    }
)
_NAMES_IN_STATUS = _NAMES | {"hostIP", "podIP", "ip", "ips", "imageID", "containerID"}
"""Only in a status: elsewhere an address can have a meaning, as 0.0.0.0 as the address of a host port."""
_LABELS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector"})
"""Fields with arbitrary keys, which are not field names."""
_NAME_LABELS = frozenset(
    {"kubernetes.io/hostname", "kubernetes.io/metadata.name", "statefulset.kubernetes.io/pod-name"}
)
_POD_KEYED = "disruptedPods"
"""A field of a PodDisruptionBudget that maps names of pods to times."""
_DRIVERS = ("CSIDriver", "drivers")
"""Fields with names of drivers, which are product names that volumes and storage classes refer to."""
_DIGITS = 10


def scrubbed(tree: Any) -> Any:
    """Return a copy without secrets."""
    if isinstance(tree, dict):
        return {key: scrubbed(value) for key, value in tree.items() if key not in _LEFT_OUT and key != _ANNOTATION}
    return [scrubbed(one) for one in tree] if isinstance(tree, list) else tree


class Hasher:
    """Replaces names by hashes that cannot be reversed without the salt."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def hash_name(self, name: str) -> str:
        """Return the hash of a name, which is itself a valid name of letters and digits."""
        if not name:
            return name
        return "h" + hashlib.blake2b(name.encode(), key=self._salt, digest_size=_DIGITS // 2).hexdigest()

    def hashed(self, tree: Any) -> Any:
        """Return a copy with hashed names: of objects, containers and images, and in references to them."""
        kind = tree.get("kind", "")
        return self._hashed(_with_named_claims(tree) if kind == "Pod" else tree, kind, _NAMES)

    def _hashed(self, tree: Any, key: str, names: frozenset[str]) -> Any:
        """Hash the value of a field. `names` are the fields to hash; a status has more of them."""
        if isinstance(tree, str):
            # A part of a request for devices is named REQUEST/PART.
            parts = tree.split("/") if key.startswith("request") else [tree]
            return "/".join(map(self.hash_name, parts)) if key in names or key in _NAME_LABELS else tree
        if isinstance(tree, list):
            return [self._hashed(one, "image" if key == "names" else key, names) for one in tree]
        if not isinstance(tree, dict):
            return tree
        if key == _POD_KEYED:
            return {self.hash_name(name): value for name, value in tree.items()}
        if key in _LABELS:
            names = frozenset()
        elif key in _DRIVERS:
            names -= {"name"}
        is_host = tree.get("key") in (*_NAME_LABELS, "metadata.name")
        return {
            name: [self.hash_name(one) for one in value]
            if is_host and name == "values"
            else self._hashed(value, name, _NAMES_IN_STATUS if name == "status" else names)
            for name, value in tree.items()
            if name != "message" or names is not _NAMES_IN_STATUS
        }


def _with_named_claims(pod: Any) -> Any:
    """Make claims of ephemeral volumes explicit: they are found by the names of pod and volume, which get hashed."""
    spec, name = pod.get("spec", {}), pod.get("metadata", {}).get("name", "")
    volumes = [
        {"name": volume["name"], "persistentVolumeClaim": {"claimName": f"{name}-{volume['name']}"}}
        if "ephemeral" in volume
        else volume
        for volume in spec.get("volumes", ())
    ]
    return {**pod, "spec": {**spec, "volumes": volumes}} if volumes else pod
