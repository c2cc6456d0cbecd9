"""Decoding of manifests into objects of the model, with validation of their resource amounts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kubestow.api import codec, quantity
from kubestow.api.custom_kinds import kinds_by_name, resource_of, with_metadata
from kubestow.api.files.errors import ObjectsError
from kubestow.api.files.manifests import Manifest
from kubestow.api.kinds import CLUSTER_SCOPED, KINDS
from kubestow.api.node import Node
from kubestow.api.pod import Pod


class Decoded(msgspec.Struct, frozen=True):
    """The objects that manifests describe."""

    objects: list[Any]
    skipped: Counter[str]
    """The number of manifests of each kind that the model does not have."""


def _with_identity(obj: Any) -> Any:
    """Return the object with the namespace and the UID that an API server would set if they are missing."""
    meta = obj.metadata
    own = resource_of(type(obj))
    is_namespaced = type(obj) not in CLUSTER_SCOPED if own is None else own.is_namespaced
    namespace = meta.namespace or ("default" if is_namespaced else "")
    if meta.uid and namespace == meta.namespace:
        return obj
    uid = meta.uid or f"{type(obj).__name__}/{namespace}/{meta.name}"
    return with_metadata(obj, namespace=namespace, uid=uid)


def _amounts(obj: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the resource lists of a node or a pod with their fields; not of pods that an API server has validated."""
    if isinstance(obj, Node):
        yield "status.capacity", obj.status.capacity
        yield "status.allocatable", obj.status.allocatable
    elif isinstance(obj, Pod) and not obj.metadata.uid:
        for field in ("initContainers", "containers"):
            for index, container in enumerate(getattr(obj.spec, field)):
                yield f"spec.{field}[{index}].resources.requests", container.resources.requests
                yield f"spec.{field}[{index}].resources.limits", container.resources.limits


def _amount_problems(obj: Any) -> Iterator[str]:
    for field, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                if quantity.nano(amount) < 0:
                    yield f"{field}.{name}: {amount} is negative"
            except quantity.QuantityError as error:
                yield f"{field}.{name}: {error}"


def decode(manifests: Iterable[Manifest], declared: Iterable[type] = ()) -> Decoded:
    """Decode objects, in order. Raises ObjectsError with all that are not valid for their kind.

    An object of kinds that plugins declare is decoded for each of them.
    """
    found = Decoded([], Counter())
    problems = []
    by_name = kinds_by_name(declared)
    for manifest in manifests:
        name = (manifest.api_version, manifest.kind)
        kinds = dict.fromkeys((*((KINDS[name],) if name in KINDS else ()), *by_name.get(name, ())))
        if not kinds:
            found.skipped[f"{manifest.kind} ({manifest.api_version})"] += 1
        for kind in kinds:
            try:
                obj = codec.decode(kind, manifest.data)
            except codec.DecodeError as error:
                problems.append(f"{manifest}: {error}")
                continue
            problems += [f"{manifest}: {problem}" for problem in _amount_problems(obj)]
            obj, own = _with_identity(obj), resource_of(kind)
            if own is None or own.selects(obj.metadata):
                found.objects.append(obj)
    if problems:
        raise ObjectsError(problems)
    return found
