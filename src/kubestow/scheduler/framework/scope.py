"""What one plugin reads and keeps besides the pod and the nodes: objects, indexes, columns, timers.

**Sharing stays right.** Equal pods share results of a plugin with `sign`. Its results may also depend on what it reads
here, which an author need not think of: the scope of a plugin has a `version` that increases with each change of it,
and that the framework adds to the signature. The version increases

- with each change of an object or pod index that the plugin reads in cycles;
- after each call of a method that may change the plugin itself (Reserve, Permit, binding, timers, callbacks), unless
  that call has written node columns: these record the changes of rows themselves.

Right after a change the plugin does not sign, so that one whose data changes with every pod is simply called for each
pod, while the others go on sharing. A plugin that reads the time or other state of the scheduler while it evaluates a
pod never signs again.

**Everything ends with the plugin.** `close` undoes all subscriptions.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kubestow.api.custom_kinds import resource_of
from kubestow.scheduler.cluster.listers import Store, key_of
from kubestow.scheduler.cluster.node_columns import NodeColumns
from kubestow.scheduler.cluster.pod_index import PodIndex
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.caller import place_of
from kubestow.scheduler.framework.declarations import Watched
from kubestow.scheduler.framework.guard import Guard
from kubestow.scheduler.framework.polling import Background, PolledValue, Timer
from kubestow.scheduler.framework.results import error_text
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
N = TypeVar("N", int, float)

_MAX_PROBLEMS = 100
EVALUATING = frozenset(
    (
        *("pre_filter", "filter", "filter_rows", "passing_rows", "row_rejection", "copies_rows"),
        *("pre_score", "score", "score_rows", "row_score", "normalize"),
        *("join_states", "join_score_states", "with_changes", "counted_rows"),
    )
)
"""The methods whose results equal pods share. They also run in dry runs, what-ifs and ahead of time."""
CHANGING = frozenset(
    ("reserve", "unreserve", "permit", "pre_bind", "bind", "post_bind", "post_filter", "pod_group_post_filter")
)
"""The methods that may change the plugin itself."""


class UndeclaredKindError(LookupError):
    """A plugin reads a kind that is not in its `watches`."""


class ObjectWriter(Protocol):
    """Writes to the objects of declared kinds."""

    def enqueue_patch(
        self, obj: Any, changes: dict[str, Any], subresource: str, is_current: Callable[[], bool]
    ) -> None:
        """Patch an object in the background, unless `is_current` says that it no longer exists."""
        ...

    async def patch_object(self, obj: T, changes: dict[str, Any], subresource: str) -> T:
        """Patch an object, or a subresource of it; return the new object. Raises CallError."""
        ...


class Source(Protocol):
    """Data that a plugin reads."""

    @property
    def version(self) -> int: ...


class Index(Generic[K, T]):
    """Objects by the result of a key function."""

    def __init__(self, objects: "Objects[T]", key: Callable[[T], K | None]) -> None:
        self._objects = objects
        self._key = key
        self._members: dict[K, dict[str, T]] = {}
        self._key_of: dict[str, K] = {}

    def __getitem__(self, key: K) -> Sequence[T]:
        """Return the objects with a key."""
        self._objects.check_readable()
        return tuple(self._members.get(key, {}).values())

    def __iter__(self) -> Iterator[K]:
        """Return the keys that have objects."""
        self._objects.check_readable()
        return iter(tuple(self._members))

    def put(self, name: str, obj: T | None) -> None:
        """Replace an object; None removes it."""
        old = self._key_of.pop(name, None)
        if old is not None:
            members = self._members[old]
            del members[name]
            if not members:
                del self._members[old]
        key = None if obj is None else self._key(obj)
        if obj is not None and key is not None:
            self._key_of[name] = key
            self._members.setdefault(key, {})[name] = obj


class Objects(Generic[T]):
    """The objects of a watched kind."""

    def __init__(self, store: Store[T], scope: "Scope", kind: type[T], *, read_in_cycle: bool) -> None:
        self._store = store
        self._scope = scope
        self._kind = kind
        self._read_in_cycle = read_in_cycle
        self._indexes: list[Index[Any, T]] = []
        self._callbacks: list[Callable[[str, T | None], object]] = []
        store.listen(self._changed)

    def close(self) -> None:
        """Stop following changes."""
        self._store.ignore(self._changed)

    @property
    def version(self) -> int:
        """Increases with each change of an object, and of `unavailable_reason`."""
        return self._store.revision

    @property
    def unavailable_reason(self) -> str:
        """Why the objects cannot be read, for example because the kind is not installed; empty if they can be."""
        return self._store.unreadable

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object; None if it does not exist. Objects of cluster-scoped kinds have no namespace."""
        self.check_readable()
        return self._store.get(f"{namespace}/{name}" if namespace else name)

    def __iter__(self) -> Iterator[T]:
        self.check_readable()
        return iter(self._store)

    def __len__(self) -> int:
        self.check_readable()
        return len(self._store)

    def index_by(self, key: Callable[[T], K | None]) -> Index[K, T]:
        """Return an index by a key function, maintained from now on; objects with the key None are not in it."""
        index = Index(self, self._scope.protected(key, "index_by"))
        for obj in self._store:
            index.put(key_of(obj), obj)
        self._indexes.append(index)
        return index

    def on_change(self, callback: Callable[[str, T | None], object]) -> None:
        """Call `callback(key, object or None)` for each existing object and each change, before hints are called.

        The key is `namespace/name`, or the name of an object of a cluster-scoped kind.
        """
        changing = self._scope.changing(self._scope.protected(callback, "on_change"))
        for obj in tuple(self._store):
            changing(key_of(obj), obj)
        self._callbacks.append(changing)

    def enqueue_patch(
        self, obj: T, *, status: Mapping[str, Any] | None = None, annotations: Mapping[str, str | None] | None = None
    ) -> None:
        """Write to the status or the annotations of an object in the background; None removes a field.

        The fields are merged into those of the object, and into a patch of the same object that is still waiting. A
        patch is retried while the API server is unavailable. It is dropped if the object is gone, or if this scheduler
        is not the leader. Raises LookupError for a part that is not in `writes` of the kind, and RuntimeError in
        methods that evaluate a pod, such as PreFilter, Filter and Score.
        """
        key, uid = key_of(obj), obj.metadata.uid  # type: ignore[attr-defined]

        def is_current() -> bool:
            found: Any = self._store.received(key)
            return found is not None and found.metadata.uid == uid

        for part, value, subresource in (("status", status, "status"), ("annotations", annotations, "")):
            if value is not None:
                self._scope.check_writable(self._kind, part)
                # A copy: the plugin may go on changing its own.
                fields = msgspec.to_builtins(value)
                changes = {"status": fields} if part == "status" else {"metadata": {"annotations": fields}}
                self._scope.writer.enqueue_patch(obj, changes, subresource, is_current)

    async def patch(self, obj: T, changes: Mapping[str, Any], subresource: str = "") -> T:
        """Merge changes into an object, or into its subresource "status"; return the new object.

        For `pre_bind` and `bind`. `changes` is a JSON merge patch of the whole object: None removes a field. Raises
        CallError if the server rejects it, and LookupError and RuntimeError as `enqueue_patch` does.
        """
        if subresource not in ("", "status") or (subresource == "status") != ("status" in changes):
            raise ValueError('patch: the status, and nothing else, is written with subresource="status"')
        for name in changes:
            part = {"status": "status", "metadata": "annotations"}.get(name, "spec")
            self._scope.check_writable(self._kind, part)
        return await self._scope.writer.patch_object(obj, msgspec.to_builtins(changes), subresource)

    def check_readable(self) -> None:
        """Raise RuntimeError while pods are evaluated, if the plugin declared that it does not read these then."""
        if not self._read_in_cycle and self._scope.is_evaluating:
            raise RuntimeError(
                f"objects of {self._kind.__name__} are read while a pod is evaluated, in spite of read_in_cycle=False"
            )

    def _changed(self, key: str) -> None:
        obj = self._store.get(key)
        for index in self._indexes:
            index.put(key, obj)
        for callback in self._callbacks:
            callback(key, obj)


class Tracked:
    """State of the scheduler that has no version: reading it while a pod is evaluated ends sharing."""

    def __init__(self, scope: "Scope", state: Any, free: Sequence[str] = (), *, always: bool = False) -> None:
        """`free` attributes may be read; with `always`, others count at any time, because references may be kept."""
        self._scope, self._state, self._free, self._always = scope, state, free, always

    def __getattr__(self, name: str) -> Any:
        self._note(name)
        found = getattr(self._state, name)
        if name in self._free or not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            # The plugin may have kept the method since its constructor.
            self._note(name)
            return found(*args, **options)

        return call

    def __iter__(self) -> Iterator[Any]:
        self._note("")
        return iter(self._state)

    def _note(self, name: str) -> None:
        if name not in self._free and (self._always or self._scope.is_evaluating):
            self._scope.reads_unversioned = True


class Pods:
    """The pods of the cluster, by keys of the plugin."""

    def __init__(self, scope: "Scope") -> None:
        self._scope = scope

    def index_by(self, key: Callable[[PodInfo], K | None], *, read_in_cycle: bool = True) -> PodIndex[K]:
        """Return an index of all pods by a key function; pods with the key None are not in it.

        The index is maintained from now on. It contains pods on nodes (of any scheduler; assumed ones included) and the
        pods without a node that name this scheduler, gated ones included. `read_in_cycle=False` declares that it is not
        read while pods are evaluated, for example because `on_change` of the index writes `node_columns`. Pods then go
        on sharing results when a pod changes.
        """
        return self._scope.index_pods(key, read_in_cycle=read_in_cycle)


def _no_check() -> None:
    """Allow every read."""


class Scope:
    """The data of one plugin."""

    def __init__(
        self,
        cluster: Cluster,
        plugin: str = "",
        watches: Sequence[Watched] | None = None,
        *,
        writer: ObjectWriter,
        background: Background,
    ) -> None:
        """`watches` are the kinds that the plugin may read; None: any."""
        self.plugin = plugin
        self.writer = writer
        self.polled: list[PolledValue[Any]] = []
        """The values that the plugin polls."""
        self._background = background
        self._timers: set[Timer] = set()
        self.is_evaluating = False
        """Whether a method runs whose results equal pods share."""
        self.reads_unversioned = False
        """Whether the plugin has read state that has no version, while it evaluated a pod."""
        self._cluster = cluster
        self._watches = watches
        self._sources: list[Source] = []
        self._columns: list[NodeColumns[Any]] = []
        self._has_pod_indexes = False
        self._own_changes = 0
        self._running = 0
        self._problems: set[tuple[str, str]] = set()
        """The functions that raised, and the messages."""
        self._signed_version: int | None = None
        self._closing: list[Callable[[], object]] = []
        self.kinds = [] if watches is None else [one.kind for one in watches]
        self.blocking = [] if watches is None else [one.kind for one in watches if one.blocks]
        """The kinds without which the plugin rejects pods."""

    # What the plugin reads and keeps

    def objects(self, kind: type[T], *, read_in_cycle: bool = True) -> Objects[T]:
        """Return the objects of a kind. Raises UndeclaredKindError."""
        if self._watches is not None and not any(one.kind is kind for one in self._watches):
            raise UndeclaredKindError(
                f"{kind.__name__} is not declared: add it to the `watches` of the class of plugin {self.plugin}"
            )
        found = Objects(self._cluster.listers.store_of(kind), self, kind, read_in_cycle=read_in_cycle)
        if read_in_cycle:
            self._sources.append(found)
        self._closing.append(found.close)
        return found

    def check_writable(self, kind: type, part: str) -> None:
        """Raise an error unless the plugin may write a part of the objects of a kind now."""
        if self.is_evaluating:
            raise RuntimeError(
                f"objects of {kind.__name__} are written while a pod is evaluated, which also happens in dry runs: "
                "write them in reserve, permit, pre_bind, post_bind or a callback"
            )
        if resource_of(kind) is None:
            raise UndeclaredKindError(f"{kind.__name__} cannot be written: declare the kind with @custom_resource")
        if self._watches is not None and not any(one.kind is kind and part in one.writes for one in self._watches):
            raise UndeclaredKindError(
                f"the {part} of {kind.__name__} is not declared as written: add watch({kind.__name__}, "
                f'writes=("{part}",)) to the `watches` of the class of plugin {self.plugin}'
            )

    def index_pods(self, key: Callable[[PodInfo], K | None], *, read_in_cycle: bool) -> PodIndex[K]:
        """Return an index of all pods."""

        def wrap(callback: Callable[[K], object]) -> Callable[[K], object]:
            return self.changing(self.protected(callback, "on_change"))

        check = _no_check if read_in_cycle else self._check_pods_readable
        index = PodIndex(self.protected(key, "index_by"), check_readable=check, wrap=wrap)
        indexes = self._cluster.pod_indexes
        indexes.add(index)
        self._has_pod_indexes = True
        if read_in_cycle:
            self._sources.append(index)
        self._closing.append(lambda: indexes.drop(index))
        return index

    def _check_pods_readable(self) -> None:
        if self.is_evaluating:
            raise RuntimeError("an index of pods is read while a pod is evaluated, in spite of read_in_cycle=False")

    def columns(self, dtype: type[N], default: N) -> NodeColumns[N]:
        """Return new columns of the plugin."""
        columns = NodeColumns(self._cluster.nodes, dtype, default)
        self._columns.append(columns)
        return columns

    def poll(
        self, fetch: Callable[[], Awaitable[T]], *, on_update: Callable[[T], object] | None, **settings: Any
    ) -> PolledValue[T]:
        """Return a value that is polled until the plugin ends. Raises TypeError or ValueError."""
        update = None if on_update is None else self.changing(self.protected(on_update, "on_update"))
        polled = PolledValue(self.plugin, fetch, on_update=update, **settings)
        self.polled.append(polled)
        self._sources.append(polled)
        self._closing.append(self._background.poll(polled).cancel)
        return polled

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Call back after a time, unless the plugin ends before."""
        if self.is_evaluating:
            raise RuntimeError(
                "call_later is called while a pod is evaluated, which also happens in dry runs: "
                "call it in reserve, permit, post_filter, post_bind or a callback"
            )
        changing = self.changing(self.protected(callback, "call_later"))

        def call() -> None:
            if timer in self._timers:
                self._timers.discard(timer)
                changing(*args)

        timer = self._background.call_later(seconds, call)
        self._timers.add(timer)
        return timer

    def unavailable(self) -> str:
        """Return why the plugin must reject pods: the state of a kind that it declared with "block"; else empty."""
        for kind in self.blocking:
            problem = self._cluster.listers.store_of(kind).unreadable
            if problem:
                return f"waiting for {problem}"
        return ""

    @property
    def keeps_state(self) -> bool:
        """Whether it reads or keeps what cannot be derived again from the history of the cluster."""
        return bool(self._columns or self._has_pod_indexes or self.polled)

    def close(self) -> None:
        """End all subscriptions of the plugin."""
        while self._closing:
            self._closing.pop()()
        while self._timers:
            self._timers.pop().cancel()

    # Sharing

    @property
    def version(self) -> int:
        """Increases whenever results of the plugin may have changed other than by changes of rows."""
        return self._own_changes + sum([source.version for source in self._sources])

    def signing(self, sign: Callable[[PodInfo], Hashable | None]) -> Callable[[PodInfo], Hashable | None]:
        """Return `sign` with the version added to its results; None right after a change, and while one is going on."""
        blocking: list[Store[Any]] = [self._cluster.listers.store_of(kind) for kind in self.blocking]

        def versioned(pod: PodInfo) -> Hashable | None:
            signed = sign(pod)
            if signed is None or self.reads_unversioned or self._running:
                return None
            version = self.version + sum([store.revision for store in blocking])
            last, self._signed_version = self._signed_version, version
            return (signed, version) if last in (None, version) else None

        return versioned

    def changing(self, function: Callable[..., T]) -> Callable[..., T]:
        """Return a function that may change the plugin, which increases the version."""

        def change(*args: Any) -> T:
            before = self._writes
            try:
                return function(*args)
            finally:
                if self._writes == before:
                    self._own_changes += 1

        return change

    def changing_async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a coroutine function that may change the plugin at any time while it runs."""

        async def change(*args: Any) -> Any:
            before = self._writes
            self._running += 1
            try:
                return await function(*args)
            finally:
                self._running -= 1
                if self._writes == before:
                    self._own_changes += 1

        return change

    @property
    def _writes(self) -> int:
        return sum([columns.writes for columns in self._columns])

    def protected(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        """Return a function that logs an exception and returns None: a callback must not fail a change.

        Each problem is logged once, with the object that it was first noticed about.
        """

        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                problem = what, error_text(error)
                if problem not in self._problems:
                    if len(self._problems) < _MAX_PROBLEMS:
                        self._problems.add(problem)
                    log.error(
                        "Plugin raised",
                        err=problem[1],
                        plugin=self.plugin,
                        method=what,
                        at=place_of(error),
                        **_subject(args),
                        others="are not logged for the same problem",
                    )
                return None

        return call


def _subject(args: Sequence[Any]) -> dict[str, str]:
    """Return the object, or its key, that a callback was called for, as a field of a log entry."""
    first = args[0] if args else None
    key = first if isinstance(first, str) else getattr(first, "key", None)
    if key is None and hasattr(first, "metadata"):
        key = key_of(first)
    return {"object": key} if isinstance(key, str) else {}


class ScopedGuard(Guard):
    """A guard that also notes in the scope of a plugin which of its methods run."""

    def __init__(self, inner: Guard, scope: Scope, *, signs: bool) -> None:
        """`signs`: the plugin has `sign`, so that changes of the plugin itself matter."""
        super().__init__()
        self._inner, self._scope, self._signs = inner, scope, signs
        self.allows_single_rows = inner.allows_single_rows

    def wrap(self, function: Callable[..., Any], plugin: str, method: str, *, columns: bool) -> Callable[..., Any]:
        wrapped = self._inner.wrap(function, plugin, method, columns=columns)
        scope = self._scope
        if method in CHANGING:
            if not self._signs:
                return wrapped
            return (scope.changing_async if method in ("pre_bind", "bind") else scope.changing)(wrapped)
        if method == "sign":
            return scope.signing(wrapped)
        if method not in EVALUATING:
            return wrapped

        def evaluate(*args: Any) -> Any:
            scope.is_evaluating = True
            try:
                return wrapped(*args)
            finally:
                scope.is_evaluating = False

        return evaluate
