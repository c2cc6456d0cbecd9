"""Rules for config maps and secrets: keys, sizes, required keys by type of secret, and immutability."""

import base64
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_unchanged, forbidden, invalid, required
from kubestow.apiserver.rules.names import check_name, config_key

_MAX_BYTES = 1024 * 1024
_REQUIRED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
"""Required keys by type of secret."""
_ACCOUNT = "kubernetes.io/service-account.name"


def validate_config_map(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that keys are valid and unique, and the total size is within the limit."""
    data, binary = obj.get("data", {}), obj.get("binaryData", {})
    for part, held in (("data", data), ("binaryData", binary)):
        for key in held:
            yield from check_name(f"{part}[{key}]", key, config_key)
    for key in data:
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if sum(map(len, data.values())) + sum(len(value) * 3 // 4 for value in binary.values()) > _MAX_BYTES:
        yield from _too_long("[]")


def _too_long(path: str) -> Iterator[Cause]:
    yield path, "FieldValueTooLong", f"Too long: may not be more than {_MAX_BYTES} bytes"


def validate_immutable(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that an immutable object is unchanged and stays immutable."""
    if old.get("immutable"):
        if not new.get("immutable"):
            yield forbidden("immutable", "field is immutable when `immutable` is set")
        for part in ("data", "binaryData"):
            if new.get(part) != old.get(part):
                yield forbidden(part, "field is immutable when `immutable` is set")


def default_secret(obj: dict[str, Any]) -> None:
    """Set the default type, and move stringData to data."""
    if not obj.get("type"):
        obj["type"] = "Opaque"
    for key, value in obj.pop("stringData", {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()


def validate_secret(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the keys, the total size, and the keys that the type of secret requires."""
    data = obj.get("data", {})
    for key in data:
        yield from check_name(f"data[{key}]", key, config_key)
    if sum(len(value) * 3 // 4 for value in data.values()) > _MAX_BYTES:
        yield from _too_long("data")
    for key in _REQUIRED_KEYS.get(obj["type"], ()):
        if key not in data:
            yield required(f"data[{key}]")
    if obj["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield required("data[username]")
        yield required("data[password]")
    if obj["type"] == "kubernetes.io/service-account-token" and not obj["metadata"].get("annotations", {}).get(
        _ACCOUNT
    ):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def validate_secret_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the type is unchanged, and an immutable secret as a whole."""
    yield from check_unchanged(new, old, "", "type")
    yield from validate_immutable(new, old)
