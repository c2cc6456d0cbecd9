"""Protection of the scheduler's objects from plugins that are not built in: they can read, but not change them.

Built-in plugins get the scheduler's objects themselves, because a copy would cost more than what most of them do. Other
plugins get read-only columns, and a copy of the pod, which is compared with the pod after every call: a plugin that
changed it fails, and the change has no effect.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
import numpy as np

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.arrays import NDArray
from kubestow.scheduler.cluster.nodes import COLUMNS, NodeTable
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.cluster.whatif import WhatIf

T = TypeVar("T")

_CHANGED = "changed the pod that it was passed, which is shared: change a copy, or keep state of your own"
_encode = msgspec.msgpack.Encoder().encode


@cache
def _decoder() -> msgspec.msgpack.Decoder[Pod]:
    return msgspec.msgpack.Decoder(Pod)


def _copy(pod: PodInfo) -> PodInfo:
    return PodInfo(_decoder().decode(_encode(pod.pod)))


def _is_unchanged(copy: PodInfo, pod: PodInfo) -> bool:
    return (
        copy.pod == pod.pod
        and copy.labels is copy.pod.metadata.labels
        and (copy.uid, copy.name, copy.namespace, copy.priority, copy.terminating)
        == (pod.uid, pod.name, pod.namespace, pod.priority, pod.terminating)
    )


class ReadOnlyView:
    """A NodeView with read-only columns."""

    def __init__(self, view: NodeView) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._view, name)
        return read_only(found) if name in COLUMNS else found

    @property
    def names(self) -> Sequence[str]:
        return _ReadOnlyList(self._view.names)

    @property
    def nodes(self) -> Sequence[Any]:
        return _ReadOnlyList(self._view.nodes)

    @property
    def pods(self) -> Sequence[Mapping[str, PodInfo]]:
        return _ReadOnlyList(self._view.pods, MappingProxyType)

    @property
    def resource_index(self) -> Mapping[str, int]:
        return MappingProxyType(self._view.resource_index)

    def label_ids(self, key: str) -> NDArray[np.int32]:
        return read_only(self._view.label_ids(key))


class _ReadOnlyList(Sequence[T]):
    """A read-only view of a list, with an optional conversion of items."""

    def __init__(self, items: Sequence[Any], convert: Callable[[Any], T] | None = None) -> None:
        self._items = items
        self._convert = convert

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        item = self._items[index]
        return item if self._convert is None or isinstance(index, slice) else self._convert(item)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items) if self._convert is None else map(self._convert, self._items)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


class Guard:
    """Wraps the methods of the plugins of one profile."""

    def __init__(self) -> None:
        self._pod: PodInfo | None = None
        self._copy: PodInfo | None = None

    allows_single_rows = True
    """Whether a filter may be called for single rows, or for a mask without reasons."""

    def wrap(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        """Return the function with protected arguments; `columns`: also make columns read-only."""
        del plugin
        # Scores are often normalized in place; these scores are used by this call only.
        protect = self._protect_scores if method == "normalize" else self._protect if columns else self._protect_pod

        if iscoroutinefunction(function):

            async def guarded_async(*args: Any) -> Any:
                given = protect(args)
                answer = await function(*given)
                self._compare(given, args)
                return answer

            return guarded_async

        def guarded(*args: Any) -> Any:
            given = protect(args)
            answer = function(*given)
            self._compare(given, args)
            return answer

        return guarded

    def _protect(self, args: Sequence[Any]) -> list[Any]:
        return [self._protected(arg) for arg in args]

    def _protect_pod(self, args: Sequence[Any]) -> list[Any]:
        return [self._protected(arg) if isinstance(arg, PodInfo | Pod) else arg for arg in args]

    def _protect_scores(self, args: Sequence[Any]) -> list[Any]:
        return [*self._protect(args[:-1]), args[-1].copy()]

    def _protected(self, arg: Any) -> Any:
        if isinstance(arg, PodInfo):
            return self._copy_of(arg)
        if isinstance(arg, Pod):
            return _decoder().decode(_encode(arg))
        if isinstance(arg, NodeTable | WhatIf):
            return ReadOnlyView(arg)
        return read_only(arg) if isinstance(arg, np.ndarray) else arg

    def _copy_of(self, pod: PodInfo) -> PodInfo:
        """Return a copy of a pod; one copy serves all plugins and points of a cycle."""
        if self._copy is None or self._pod is not pod:
            self._pod, self._copy = pod, _copy(pod)
        return self._copy

    def _compare(self, given: Sequence[Any], args: Sequence[Any]) -> None:
        for mine, original in zip(given, args, strict=True):
            if isinstance(mine, PodInfo):
                if not _is_unchanged(mine, original):
                    self._copy = None
                    raise TypeError(_CHANGED)
            elif isinstance(mine, Pod) and mine != original:
                raise TypeError(_CHANGED)
