"""The one place from which plugins are called: it counts, times and attributes every call.

Timing every call of every cycle would cost more than some plugins do; a caller is told at the start of a cycle whether
this is one of the few to time.
"""

from collections.abc import Callable
from typing import Any, Protocol

from kubestow.framework.results import Code, PluginError, PostFilterResult, Rejection, Rejections, Skip, Wait

_CODED = (Rejection, PostFilterResult)


class CallObserver(Protocol):
    """Is told how long calls took."""

    def plugin_called(self, point: str, plugin: str, status: str, seconds: float) -> None: ...

    def point_ran(self, profile: str, point: str, status: str, seconds: float) -> None: ...

    def plugin_failed(self, error: PluginError) -> None:
        """A plugin failed where nothing comes of it: nobody else is told."""


class Hook:
    """A plugin at one of its points."""

    __slots__ = (
        "costly_rows",
        "evaluations",
        "function",
        "name",
        "normalizes",
        "plugin",
        "point",
        "row_rejection",
        "row_score",
    )

    def __init__(self, plugin: Any, point: str, function: Callable[..., Any], *, costly_rows: bool = False) -> None:
        self.plugin = plugin
        self.name: str = plugin.name
        self.point = point
        self.function = function
        self.evaluations = 0
        """How often it was called; for filters and scores, counted per node."""
        self.costly_rows = costly_rows
        """Whether it is to be asked only about rows that still matter."""
        self.normalizes = hasattr(plugin, "normalize")
        self.row_rejection: Callable[..., Any] | None = getattr(plugin, "row_rejection", None)
        self.row_score: Callable[..., Any] | None = getattr(plugin, "row_score", None)


class Caller:
    """Calls plugins for one profile."""

    def __init__(self, profile: str, observer: CallObserver, stopwatch: Callable[[], float]) -> None:
        self._profile = profile
        self._observer = observer
        self._stopwatch = stopwatch
        self.timing = False

    def call(self, hook: Hook, *args: Any, rows: int = 1) -> Any:
        """Call a plugin at a point; whatever it raises comes out as a PluginError that names it."""
        hook.evaluations += rows
        if not self.timing:
            try:
                return hook.function(*args)
            except PluginError:
                raise
            except Exception as error:
                raise PluginError(hook.name, hook.point, error) from error
        return self._call_timed(hook, hook.function, *args)

    def call_row(self, hook: Hook, function: Callable[..., Any], *args: Any) -> Any:
        """Ask a plugin about a single row in plain numbers: counted, timed and attributed like a call at its point."""
        hook.evaluations += 1
        if self.timing:
            return self._call_timed(hook, function, *args)
        try:
            return function(*args)
        except Exception as error:
            raise PluginError(hook.name, hook.point, error) from error

    def _call_timed(self, hook: Hook, function: Callable[..., Any], *args: Any) -> Any:
        start = self._stopwatch()
        status = Code.ERROR
        try:
            result = function(*args)
            status = status_of(result)
        except PluginError:
            raise
        except Exception as error:
            raise PluginError(hook.name, hook.point, error) from error
        finally:
            self._observer.plugin_called(hook.point, hook.name, status.label, self._stopwatch() - start)
        return result

    def call_aside(self, plugin: Any, method: str, *args: Any) -> Any:
        """Call a method that belongs to a point but is none itself: attributed, neither counted nor timed."""
        try:
            return getattr(plugin, method)(*args)
        except PluginError:
            raise
        except Exception as error:
            raise PluginError(plugin.name, method, error) from error

    async def call_async(self, hook: Hook, *args: Any) -> Any:
        """The same for a plugin that awaits."""
        hook.evaluations += 1
        start = self._stopwatch()
        status = Code.ERROR
        try:
            result = await hook.function(*args)
            status = status_of(result)
        except PluginError:
            raise
        except Exception as error:
            raise PluginError(hook.name, hook.point, error) from error
        finally:
            self._observer.plugin_called(hook.point, hook.name, status.label, self._stopwatch() - start)
        return result

    def failed(self, error: PluginError) -> None:
        """A plugin failed, and the caller goes on as if it had not."""
        self._observer.plugin_failed(error)

    def started(self) -> float:
        return self._stopwatch()

    def finished(self, point: str, status: Code, start: float, end: float | None = None) -> None:
        """A point has run for all its plugins; now, or at `end`."""
        end = self._stopwatch() if end is None else end
        self._observer.point_ran(self._profile, point, status.label, end - start)


def status_of(result: Any) -> Code:
    """What a plugin's answer amounts to."""
    if isinstance(result, _CODED):
        return result.code
    if isinstance(result, Skip):
        return Code.SKIP
    if isinstance(result, Wait):
        return Code.WAIT
    if isinstance(result, Rejections) and result.kinds.any():
        return Code.UNSCHEDULABLE
    return Code.SUCCESS
