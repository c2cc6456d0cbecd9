"""The base class of all Structs, and what every object has: metadata, owner references."""

from msgspec import Struct


class Base(Struct, frozen=True, gc=False, omit_defaults=True):
    """An immutable part of an API object.

    `gc=False` keeps the millions of small Structs of a large cluster out of the cyclic collector; frozen trees of
    Structs cannot form cycles.
    """


class OwnerReference(Base, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Base, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    generation: int = 0
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    ownerReferences: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class ApiObject(Base, frozen=True):
    """An object of the API, which has metadata."""

    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(Base, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Base, frozen=True):
    matchLabels: dict[str, str] = {}
    matchExpressions: tuple[LabelSelectorRequirement, ...] = ()


class ObjectReference(Base, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resourceVersion: str = ""
    fieldPath: str = ""


# The API server writes quantities as strings; manifests may hold plain numbers.
RawQuantity = str | int | float
ResourceList = dict[str, RawQuantity]


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that manages the object; None if there is none."""
    for owner in meta.ownerReferences:
        if owner.controller:
            return owner
    return None
