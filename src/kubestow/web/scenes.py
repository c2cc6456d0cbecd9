"""All that a dry run depends on: objects, a configuration, a time; of a live scheduler, or of a simulation at its end.

A simulation writes its objects to `objects.jsonl.gz`, one in each line, as kubectl would show them but for what
scheduling does not read.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from kubestow.explaining.world import ExplainError, Setup, World
from kubestow.model import codec
from kubestow.model.kinds import KINDS
from kubestow.model.meta import ObjectMeta
from kubestow.model.pod import Pod
from kubestow.model.workloads import PriorityClass
from kubestow.wiring.core import Core

OBJECTS = "objects.jsonl.gz"
_FAST = 1
_NAMES = {kind: name for name, kind in KINDS.items()}


class Scene(NamedTuple):
    """Where pods are tried."""

    setup: Setup
    objects: Callable[[], list[Any]]
    """Called in a thread; raises ExplainError."""
    now: float

    def world(self) -> World:
        """A new one; raises ExplainError, ProfileError."""
        objects = self.objects()
        return World(self.setup, [*_priority_classes(objects), *objects], self.now)


def pods_of(objects: Iterable[Any]) -> Iterator[Pod]:
    """Those objects that are pods."""
    return (obj for obj in objects if isinstance(obj, Pod))


def collected(core: Core) -> list[Any]:
    """What a scheduler knows of; to be called between two cycles."""
    cluster = core.cluster
    found: list[Any] = [node for node in cluster.nodes.nodes if node is not None]
    for store in cluster.listers.stores():
        found += store
    placed = {info.uid: info.pod for _, info in cluster.placed_pods()}
    pending = [pod for pod in core.intake.pending_pods() if pod.metadata.uid not in placed]
    return [*found, *placed.values(), *pending]


def write(objects: Iterable[Any], folder: Path) -> None:
    """Keep objects in a folder; the file is complete or not there."""
    part = folder / f".{OBJECTS}.part"
    # Without a time in it, the same objects give the same bytes.
    with part.open("wb") as raw, gzip.GzipFile("", "wb", _FAST, raw, mtime=0) as file:
        for obj in objects:
            version, kind = next(_NAMES[one] for one in type(obj).__mro__ if one in _NAMES)
            alone = replace(obj, source=msgspec.Raw(b"null")) if hasattr(obj, "source") else obj
            fields = msgspec.json.encode(alone)
            file.write(b'{"apiVersion":"%b","kind":"%b",%b\n' % (version.encode(), kind.encode(), fields[1:]))
    part.replace(folder / OBJECTS)


class _Kind(msgspec.Struct):
    apiVersion: str
    kind: str


def read(path: Path) -> list[Any]:
    """What `write` has kept; raises ExplainError."""
    found = []
    kind_of = msgspec.json.Decoder(_Kind).decode
    try:
        with gzip.open(path) as file:
            for line in file:
                name = kind_of(line)
                found.append(codec.decode(KINDS[name.apiVersion, name.kind], line))
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ExplainError(f"{path}: the objects cannot be read: {error}") from None
    return found


def _priority_classes(objects: Iterable[Any]) -> Iterator[PriorityClass]:
    """The scheduler is not told of them, but pods have them."""
    values = {}
    for pod in pods_of(objects):
        if pod.spec.priorityClassName and pod.spec.priority is not None:
            values[pod.spec.priorityClassName] = pod.spec.priority
    for name, value in values.items():
        yield PriorityClass(metadata=replace(ObjectMeta(), name=name), value=value)
