"""Values that plugins poll from outside of the cluster, such as measured utilization, and timers.

    self._load = handle.poll(self.fetch, interval=30, stale_after=120, on_update=self._on_update)

`fetch` runs beside the scheduling loop. Its result replaces the value between two cycles, so that a cycle sees one
value. A failure keeps the previous value, which becomes stale after a while; the plugin decides what that means.
"""

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import msgspec

from kubestow.scheduler.cluster.events import Action, ClusterEvent

T = TypeVar("T")


class Timer(Protocol):
    """Something that will happen, until it is cancelled."""

    def cancel(self) -> object: ...


class Http(Protocol):
    """Requests to other servers, for `fetch`."""

    async def get_json(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        ca_file: str = "",
    ) -> Any:
        """Return the decoded JSON of a GET. Raises CallError if there is none.

        HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply. `ca_file` is the certificate authority of an https server; without
        it, those of the system apply.
        """


class Background(Protocol):
    """Runs what plugins do outside of cycles."""

    @property
    def http(self) -> Http: ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back once, between two cycles."""
        ...

    def poll(self, polled: "PolledValue[Any]") -> Timer:
        """Replace a value at its interval from now on."""
        ...


class PolledValue(Generic[T]):
    """A value that is fetched at an interval."""

    def __init__(
        self,
        plugin: str,
        fetch: Callable[[], Awaitable[T]],
        *,
        interval: float,
        stale_after: float,
        on_update: Callable[[T], object] | None = None,
        simulate: Callable[[], T] | None = None,
    ) -> None:
        """Raises TypeError or ValueError for invalid arguments."""
        if not inspect.iscoroutinefunction(fetch):
            raise TypeError("poll: fetch must be declared with `async def`")
        for name, seconds in (("interval", interval), ("stale_after", stale_after)):
            if not 0 < seconds < math.inf:
                raise ValueError(f"poll: {name} must be a positive number of seconds, not {seconds!r}")
        self.plugin = plugin
        self.name = f"{plugin}.{getattr(fetch, '__name__', 'fetch')}"
        """Plugin and function; the name of the value in events and recordings."""
        self.fetch = fetch
        self.interval = float(interval)
        self.stale_after = float(stale_after)
        self.simulate = simulate
        """Returns a value in simulations without recorded values."""
        self.value: T | None = None
        """The latest value; None before the first one."""
        self.updated_at = 0.0
        """The time of the latest value, in seconds since the Unix epoch; 0 before the first one."""
        self.is_stale = True
        """Whether there is no value yet, or the latest one is older than `stale_after`."""
        self.error = ""
        """Why the latest attempt failed; empty after a success."""
        self.version = 0
        """Increases whenever one of the attributes above changes."""
        self._on_update = on_update

    @property
    def event_resource(self) -> str:
        """The name in events."""
        return self.name

    @property
    def event(self) -> ClusterEvent:
        """The event that the value has changed or become stale."""
        return ClusterEvent(self.name, Action.UPDATE)

    def succeed(self, value: T, now: float) -> None:
        """Replace the value."""
        self.value, self.updated_at, self.is_stale, self.error = value, now, False, ""
        self.version += 1
        if self._on_update is not None:
            self._on_update(value)

    def fail(self, error: str) -> None:
        """Note a failed attempt; the value stays."""
        self.error = error
        self.version += 1

    def expire(self) -> None:
        """Mark the value as stale."""
        self.is_stale = True
        self.version += 1

    def decode(self, value: Any) -> T:
        """Convert a value from JSON to what `fetch` returns. Raises ValueError."""
        try:
            kind = get_type_hints(self.fetch).get("return", Any)
        except NameError:
            kind = Any
        try:
            return msgspec.convert(value, kind)  # type: ignore[no-any-return]
        except msgspec.ValidationError as error:
            raise ValueError(f"{self.name}: the value does not fit the result of its function: {error}") from None
        except TypeError:
            # The annotation is not one that can be decoded.
            return value  # type: ignore[no-any-return]


class NoHttp:
    """Refuses every request."""

    async def get_json(self, url: str, *_args: Any, **_options: Any) -> Any:
        raise RuntimeError(f"GET {url}: there is no network here, as in simulations; give the value instead")


class _Never:
    """A timer that never fires."""

    def cancel(self) -> None: ...


class NoBackground:
    """Never calls back and polls nothing, so that values stay stale."""

    http: Http = NoHttp()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        del seconds, callback
        return _Never()

    def poll(self, polled: PolledValue[Any]) -> Timer:
        del polled
        return _Never()
