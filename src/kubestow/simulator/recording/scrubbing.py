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
        *("name", "generateName", "namespace", "nodeName", "nominatedNodeName", "claimName", "volumeName", "image"),
        *("address", "hostname", "serviceAccount", "serviceAccountName", "storageClassName", "deviceClassName", "pool"),
        *("resourceClaimName", "resourceClaimTemplateName", "volumesAttached", "attachedVolume", "providerID"),
    }
)
_NAMES_IN_STATUS = _NAMES | {"hostIP", "podIP", "ip", "ips", "imageID"}
"""Elsewhere, an address can mean something: that of a host port is compared with 0.0.0.0."""
_HOSTNAME = "kubernetes.io/hostname"
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
        return self._hashed(tree, "", _NAMES)

    def _hashed(self, tree: Any, key: str, names: frozenset[str]) -> Any:
        """`names` are the keys of what is hashed: there are more of them in a status."""
        if isinstance(tree, dict):
            is_host = tree.get("key") in (_HOSTNAME, "metadata.name")
            return {
                name: [self.word(one) for one in value]
                if is_host and name == "values"
                else self._hashed(
                    value, "name" if name == _HOSTNAME else name, _NAMES_IN_STATUS if name == "status" else names
                )
                for name, value in tree.items()
                if name != "message" or names is not _NAMES_IN_STATUS
            }
        if isinstance(tree, list):
            return [self._hashed(one, "image" if key == "names" else key, names) for one in tree]
        return self.word(tree) if isinstance(tree, str) and key in names else tree
