"""Events have two forms, one for each API group they are served in; they are stored in the older one."""

from typing import Any

from kubestow.apiserver.resources import Resource

_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES = {new: old for old, new in _NEW_NAMES.items()}
_EMPTY: dict[str, Any] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def differs(resource: Resource) -> bool:
    """Whether objects of this resource are stored in another form than they are served in."""
    return resource.group == "events.k8s.io"


def to_stored(resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    """The form in which an object is stored."""
    if resource.storage != "events":
        return obj
    if differs(resource):
        obj = {_OLD_NAMES.get(key, key): value for key, value in obj.items()}
        obj["apiVersion"] = "v1"
    for key, value in _EMPTY.items():
        obj.setdefault(key, value)
    return obj


def from_stored(resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    """The form in which an object is served."""
    if not differs(resource):
        return obj
    obj = {_NEW_NAMES.get(key, key): value for key, value in obj.items()}
    obj["apiVersion"] = resource.api_version
    return obj
