"""The log of the changes of the cluster.

The scheduler is deterministic: a decision can be derived again from its inputs. The history keeps these inputs. Each
change of the cluster is one entry with the value before and the value after it, so that a copy of the cluster can be
moved back to an earlier revision, and forward again (see `past`).

Values are immutable, and entries are only ever appended to a list: another thread may read the history while the
scheduler appends to it.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from kubestow.api.devices import ResourceSlice

NODE = "node"
"""A node, by name; the value is a `state.KnownNode`."""
POD = "pod"
"""A pod on a node, by UID; the value is a `state.PlacedPod`."""
IMAGE = "image"
"""An image that nodes have, by name; the value is its size in bytes, which depends on which node had it first."""
MEMBER = "member"
"""A pending member of a pod group, by key of the group and UID of the pod; the value is the pod."""
PENDING_ALLOCATION = "pending allocation"
"""Devices reserved for a claim, by UID of the claim; the value is an `AllocationResult`."""
NOMINATION = "nomination"
"""A nominated pod, by UID; the value is a `nominator.Nomination`."""
UNREADABLE = "unreadable"
"""Why objects of a kind cannot be read, by kind; the value is a message, empty if they can be."""

Change = tuple[str | type, Hashable, Any, Any]
"""Part, key, value before, value after. None stands for an object that does not exist.

The part is one of the constants above, or the kind of an object in a store. The value of an object, by key, is a pair:
the object as received, and as assumed.
"""

_ENTRY_BYTES = 120
_POD_BYTES = 2_500
_NODE_BYTES = CHANGE_BYTES = 3_000
_IMAGE_NAME_BYTES = 60
_LABEL_BYTES = 100
_OBJECT_BYTES = 2_000
_DEVICE_BYTES = 2_000


class ForgottenError(LookupError):
    """The history does not contain a revision any more."""


class History:
    """Changes in order; a revision is the number of changes before it."""

    def __init__(self, on_growth: Callable[[], None] | None = None, every: int = 1) -> None:
        """`on_growth` is called after each `every` changes, and may drop the oldest ones."""
        self._on_growth = on_growth
        self._every = self._enough = every
        """The number of entries at which `on_growth` is called next."""
        self._entries: list[Change] = []
        self._log = (0, self._entries)
        """The revision before the first entry, and the entries: replaced as one, for readers in other threads."""
        self._settled = 0
        self.on_drop: list[Callable[[], None]] = []
        """Called before changes are dropped: the last chance to read them."""
        self.bytes = 0
        """Estimate of the memory that only the history keeps in use, as of the last `settle`."""

    @property
    def first(self) -> int:
        """The oldest revision that is available."""
        return self._log[0]

    @property
    def revision(self) -> int:
        """The number of changes ever recorded."""
        return self._log[0] + len(self._entries)

    def note(self, part: str | type, key: Hashable, before: Any, after: Any) -> None:
        """Append a change."""
        self._entries.append((part, key, before, after))
        if len(self._entries) >= self._enough:
            if self._on_growth is not None:
                self._on_growth()
            self._enough = len(self._entries) + self._every

    def between(self, start: int, stop: int) -> list[Change]:
        """Return the changes that lead from one revision to a later one; may be called in any thread.

        Raises ForgottenError if the first of them has been dropped, ValueError if the last has not been made.
        """
        first, entries = self._log
        if start < first:
            raise ForgottenError(f"revision {start} is forgotten: the history begins at revision {first}")
        if stop > first + len(entries):
            raise ValueError(f"revision {stop} does not exist: the history ends at revision {first + len(entries)}")
        return entries[start - first : stop - first]

    def settle(self) -> None:
        """Add the changes since the last call to `bytes`.

        The owner calls it every few hundred changes: counting in batches costs less than counting each change.
        """
        self.bytes += _size_of(self._entries[self._settled - self.first :])
        self._settled = self.revision

    def drop_before(self, revision: int) -> None:
        """Drop the changes before a revision."""
        self.settle()
        count = min(revision, self.revision) - self.first
        if count > 0:
            for callback in self.on_drop:
                callback()
            self.bytes -= _size_of(self._entries[:count])
            self._entries = self._entries[count:]
            self._log = self.first + count, self._entries
            self._enough = len(self._entries) + self._every


def excess_bytes(obj: Any) -> int:
    """Estimate the bytes that an object takes beyond most others: its annotations, and the JSON that it keeps."""
    annotations = obj.metadata.annotations
    size = sum(map(len, annotations.values())) if annotations else 0
    return size + len(getattr(obj, "source", b""))


def _size_of(changes: Sequence[Change]) -> int:
    """Estimate the bytes that changes keep in use: the values before them; those after them are in the cluster."""
    size = _ENTRY_BYTES * len(changes)
    replaced = [(part, before) for part, _, before, _ in changes if before is not None]
    for part, before in replaced:
        if part is POD:
            size += _POD_BYTES + excess_bytes(before.pod.pod)
        elif part is NODE:
            meta, status = before.node.metadata, before.node.status
            names = sum([len(image.names) for image in status.images])
            labels = len(meta.labels) + len(meta.annotations)
            size += _NODE_BYTES + _IMAGE_NAME_BYTES * names + _LABEL_BYTES * labels
            size += excess_bytes(before.node)
        elif isinstance(part, type):
            received, _ = before
            size += _OBJECT_BYTES + excess_bytes(received)
            if part is ResourceSlice:
                size += _DEVICE_BYTES * len(received.spec.devices)
        elif part is not IMAGE:
            size += _OBJECT_BYTES
    return size
