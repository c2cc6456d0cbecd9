"""What of an object goes into a recording: nothing that could be a secret, and, if so wished, no name.

Environment, commands and arguments of containers are left out wholesale, as are managed fields and what kubectl keeps
of the manifest. Secrets and ConfigMaps are not watched to begin with. Hashed names stay equal where they were equal;
messages in statuses, which may tell any name, are left out with them.
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
"""Elsewhere, an address can mean something: that of a host port is compared with 0.0.0.0."""
_LABELS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector"})
"""What has keys of its own, whatever they mean elsewhere."""
_NAME_LABELS = frozenset(
    {"kubernetes.io/hostname", "kubernetes.io/metadata.name", "statefulset.kubernetes.io/pod-name"}
)
_BY_POD = "disruptedPods"
"""Times by the names of pods, in a PodDisruptionBudget."""
_DRIVERS = ("CSIDriver", "drivers")
"""Their names are those of products, by which volumes and storage classes ask for them."""
_DIGITS = 10


def scrubbed(tree: Any) -> Any:
    """A copy without what is not to be kept."""
    if isinstance(tree, dict):
        return {key: scrubbed(value) for key, value in tree.items() if key not in _LEFT_OUT and key != _ANNOTATION}
    return [scrubbed(one) for one in tree] if isinstance(tree, list) else tree


class Hasher:
    """Replaces names by hashes that cannot be turned back without the salt."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def word(self, name: str) -> str:
        """The same for the same name; a name of its own kind: letters and digits."""
        if not name:
            return name
        return "h" + hashlib.blake2b(name.encode(), key=self._salt, digest_size=_DIGITS // 2).hexdigest()

    def hashed(self, tree: Any) -> Any:
        """A copy with all names hashed: of objects, containers, images, and of what refers to them."""
        kind = tree.get("kind", "")
        return self._hashed(_with_named_claims(tree) if kind == "Pod" else tree, kind, _NAMES)

    def _hashed(self, tree: Any, key: str, names: frozenset[str]) -> Any:
        """What is found under a key. `names` are the keys of what is hashed: there are more of them in a status."""
        if isinstance(tree, str):
            # A part of a request for devices is named REQUEST/PART.
            parts = tree.split("/") if key.startswith("request") else [tree]
            return "/".join(map(self.word, parts)) if key in names or key in _NAME_LABELS else tree
        if isinstance(tree, list):
            return [self._hashed(one, "image" if key == "names" else key, names) for one in tree]
        if not isinstance(tree, dict):
            return tree
        if key == _BY_POD:
            return {self.word(name): value for name, value in tree.items()}
        if key in _LABELS:
            names = frozenset()
        elif key in _DRIVERS:
            names -= {"name"}
        is_host = tree.get("key") in (*_NAME_LABELS, "metadata.name")
        return {
            name: [self.word(one) for one in value]
            if is_host and name == "values"
            else self._hashed(value, name, _NAMES_IN_STATUS if name == "status" else names)
            for name, value in tree.items()
            if name != "message" or names is not _NAMES_IN_STATUS
        }


def _with_named_claims(pod: Any) -> Any:
    """The claim of an ephemeral volume is found by the names of pod and volume: once they are hashed, only if told."""
    spec, name = pod.get("spec", {}), pod.get("metadata", {}).get("name", "")
    volumes = [
        {"name": volume["name"], "persistentVolumeClaim": {"claimName": f"{name}-{volume['name']}"}}
        if "ephemeral" in volume
        else volume
        for volume in spec.get("volumes", ())
    ]
    return {**pod, "spec": {**spec, "volumes": volumes}} if volumes else pod
