"""Manifests to objects of the model, those of kinds that it has, with amounts that there can be."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api import codec, quantity
from kubestow.api.files.errors import ObjectsError
from kubestow.api.files.manifests import Manifest
from kubestow.api.kinds import CLUSTER_SCOPED, KINDS
from kubestow.api.node import Node
from kubestow.api.pod import Pod


class Decoded(msgspec.Struct, frozen=True):
    """What manifests describe."""

    objects: list[Any]
    skipped: Counter[str]
    """How many there were of each kind that the model does not have."""


def _completed(obj: Any) -> Any:
    """With the namespace and the uid that an API server would give it, if it has none."""
    meta = obj.metadata
    namespace = meta.namespace or ("" if type(obj) in CLUSTER_SCOPED else "default")
    if meta.uid and namespace == meta.namespace:
        return obj
    uid = meta.uid or f"{type(obj).__name__}/{namespace}/{meta.name}"
    return replace(obj, metadata=replace(meta, namespace=namespace, uid=uid))


def _amounts(obj: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a node has, and what containers ask for, by field; of pods that an API server let in it is as it is."""
    if isinstance(obj, Node):
        yield "status.capacity", obj.status.capacity
        yield "status.allocatable", obj.status.allocatable
    elif isinstance(obj, Pod) and not obj.metadata.uid:
        for field in ("initContainers", "containers"):
            for index, container in enumerate(getattr(obj.spec, field)):
                yield f"spec.{field}[{index}].resources.requests", container.resources.requests
                yield f"spec.{field}[{index}].resources.limits", container.resources.limits


def _wrong_amounts(obj: Any) -> Iterator[str]:
    for field, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                if quantity.nano(amount) < 0:
                    yield f"{field}.{name}: {amount} is negative"
            except quantity.QuantityError as error:
                yield f"{field}.{name}: {error}"


def decode(manifests: Iterable[Manifest]) -> Decoded:
    """The objects, in order; raises ObjectsError with all that do not fit their kind."""
    found = Decoded([], Counter())
    problems = []
    for manifest in manifests:
        kind = KINDS.get((manifest.api_version, manifest.kind))
        if kind is None:
            found.skipped[f"{manifest.kind} ({manifest.api_version})"] += 1
            continue
        try:
            obj = codec.decode(kind, manifest.data)
        except codec.DecodeError as error:
            problems.append(f"{manifest}: {error}")
        else:
            problems += [f"{manifest}: {problem}" for problem in _wrong_amounts(obj)]
            found.objects.append(_completed(obj))
    if problems:
        raise ObjectsError(problems)
    return found
