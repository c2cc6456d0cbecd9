"""Manifests to objects of the model, those of kinds that it has."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.model import codec
from kubestow.model.kinds import CLUSTER_SCOPED, KINDS
from kubestow.objects.errors import ObjectsError
from kubestow.objects.manifests import Manifest


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
            found.objects.append(_completed(codec.decode(kind, manifest.data)))
        except codec.DecodeError as error:
            problems.append(f"{manifest}: {error}")
    if problems:
        raise ObjectsError(problems)
    return found
