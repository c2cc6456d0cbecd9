"""The one place from which plugins are called: it counts, times, checks and attributes every call.

Every failure of a plugin, and every invalid result, is raised as a PluginError that names the plugin. Timing every call
of every cycle would cost more than some plugins do; at the start of a cycle, `timing` is set for the few to be timed.
"""

import inspect
import os
import traceback
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.contract import WrongAnswerError, check_scores, rejection
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.results import (
    Code,
    PluginError,
    PostFilterResult,
    Rejection,
    Rejections,
    Skip,
    Wait,
    error_text,
)
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

T = TypeVar("T")
Args = TypeVarTuple("Args")

SLOW_SECONDS = 0.02
"""A plugin that takes longer for one pod, at one extension point, is reported once."""
_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
_IN_TREE = f"{Path(__file__).parents[1] / 'plugins'}{os.sep}"
_CALLERS = (_PACKAGE, "<frozen importlib")

_CODED = (Rejection, PostFilterResult)


def failure(plugin: str, point: str, method: str, error: BaseException, function: Any = None) -> PluginError:
    """Return the error of a plugin, attributed to it. Raises the error itself if the plugin did not cause it.

    `function` is the method, to which an invalid result is attributed.
    """
    if isinstance(error, PluginError):
        return error
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, WrongAnswerError):
        return PluginError(plugin, point, f"{method} {error}", line_of(function))
    message = error_text(error)
    place = place_of(error)
    if place:
        log.error("Plugin raised", err=message, plugin=plugin, extensionPoint=point, at=place)
    return PluginError(plugin, point, message, place)


def place_of(error: BaseException) -> str:
    """Return the deepest line of a plugin's own file in the traceback of an exception; empty for built-in plugins."""
    lines = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    file = next((name for name, _ in lines if name.startswith(_IN_TREE) or not name.startswith(_CALLERS)), _IN_TREE)
    return "" if file.startswith(_IN_TREE) else f"{file}:{[number for name, number in lines if name == file][-1]}"


def line_of(function: Any) -> str:
    """Return the file and line at which a function of a plugin is defined; empty for those of built-in plugins."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or code.co_filename.startswith(_PACKAGE):
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}"


def _failure(hook: Hook, error: BaseException) -> PluginError:
    return failure(hook.name, hook.point, hook.method, error, getattr(hook.plugin, hook.method, None))


def _checked(hook: Hook, answer: Any, args: tuple[Any, ...]) -> Any:
    if answer is not None:
        if hook.check is not None:
            hook.check(answer, args)
    elif hook.must_return:
        raise WrongAnswerError("must not return None")
    return answer


def _report_slow(hook: Hook, seconds: float, rows: int) -> None:
    hook.is_reported = True
    plain = hook.method in ("filter", "score")
    advice = f"{hook.method}_rows evaluates all nodes at once" if plain else "every pod waits for it"
    log.warning(
        "Plugin is slow",
        plugin=hook.name,
        extensionPoint=hook.point,
        millisecondsPerPod=round(1000 * seconds, 1),
        nodes=rows,
        advice=advice,
        at=line_of(getattr(hook.plugin, hook.method, None)),
    )


class Caller:
    """Calls plugins for one profile."""

    def __init__(self, profile: str, metrics: SchedulerMetrics, stopwatch: Callable[[], float]) -> None:
        self._profile = profile
        self._observe_plugin = metrics.plugin_execution_seconds.observe
        self._observe_point = metrics.extension_point_seconds.observe
        self._stopwatch = stopwatch
        self.started = stopwatch
        """Returns the time at which an extension point starts."""
        self.timing = False

    def call(self, hook: Hook, *args: Any, rows: int = 1) -> Any:
        """Call a plugin. Calls for no rows, and methods outside of a pod's cycle, are not timed."""
        if self.timing and hook.is_timed and rows:
            return self._call_timed(hook, args, rows)
        hook.evaluations += rows
        try:
            answer = hook.function(*args)
            if answer is not None:
                if hook.check is not None:
                    hook.check(answer, args)
            elif hook.must_return:
                raise WrongAnswerError("must not return None")
        except BaseException as error:
            raise _failure(hook, error) from error
        return answer

    def call_row(self, hook: Hook, state: Any, table: NodeView, row: int) -> Any:
        """Call a plugin for one row. This is the most frequent call, so it avoids everything that is not needed."""
        if self.timing:
            return self._call_timed(hook, (state, table, row), 1)
        hook.evaluations += 1
        try:
            answer = hook.function(state, table, row)
            if answer is not None and hook.check is not None:
                hook.check(answer, ())
        except BaseException as error:
            raise _failure(hook, error) from error
        return answer

    def _call_timed(self, hook: Hook, args: tuple[Any, ...], rows: int) -> Any:
        hook.evaluations += rows
        start = self._stopwatch()
        status = Code.ERROR
        try:
            answer = _checked(hook, hook.function(*args), args)
            status = status_of(answer)
        except BaseException as error:
            raise _failure(hook, error) from error
        finally:
            seconds = self._stopwatch() - start
            self._observe_plugin(seconds, hook.point, hook.name, status.label)
            if seconds > SLOW_SECONDS and not hook.is_trusted and not hook.is_reported:
                _report_slow(hook, seconds, rows)
        return answer

    async def call_async(self, hook: Hook, *args: Any) -> Any:
        """Call an asynchronous method of a plugin."""
        hook.evaluations += 1
        start = self._stopwatch()
        status = Code.ERROR
        try:
            answer = _checked(hook, await hook.function(*args), args)
            status = status_of(answer)
        except (Exception, SystemExit) as error:
            # Other exceptions do not come from the plugin: the call was cancelled.
            raise _failure(hook, error) from error
        finally:
            seconds = self._stopwatch() - start
            self._observe_plugin(seconds, hook.point, hook.name, status.label)
        return answer

    def sign(self, hooks: Sequence[Hook], pod: Any) -> tuple[Hashable, ...]:
        """Return the signature of each plugin. Raises PluginError."""
        try:
            signed = tuple([hook.function(pod) for hook in hooks])
            # Raises TypeError if one of them cannot be hashed.
            hash(signed)
        except BaseException:
            # Call them one by one to name the one that fails.
            return tuple([self.call(hook, pod) for hook in hooks])
        return signed

    def first_rejection(self, hooks: Sequence[Hook], pod: Any) -> Rejection | None:
        """Return the first rejection of a pod by some plugins; a single step, since it runs for every pod."""
        for hook in hooks:
            if self.timing:
                answer = self._call_timed(hook, (pod,), 1)
            else:
                try:
                    answer = hook.function(pod)
                    if answer is not None and hook.check is not None:
                        hook.check(answer, ())
                except BaseException as error:
                    raise _failure(hook, error) from error
            if answer is not None:
                return answer._replace(plugin=hook.name)  # type: ignore[no-any-return]
        return None

    def log_failure(self, error: PluginError) -> None:
        """Log the failure of a plugin that is ignored."""
        log.unexpected("Plugin failed; continuing without its result", err=error)

    def run_point(self, point: str, function: Callable[[*Args], T], *args: *Args) -> T:
        """Call the function that runs an extension point, and record its duration; an exception counts as an error."""
        start, status = self._stopwatch(), Code.ERROR
        try:
            result = function(*args)
            status = Code.SUCCESS
            return result
        finally:
            self.record_point(point, status, start)

    def record_point(self, point: str, status: Code, start: float, end: float | None = None) -> float:
        """Record the duration of an extension point that ended now, or at `end`; return the end."""
        end = self._stopwatch() if end is None else end
        self._observe_point(end - start, point, self._profile, status.label)
        return end


def check_range(hook: Hook, scores: IntArray, view: NodeView, rows: IntArray) -> None:
    """Raise PluginError if the score that a plugin gave a row is not between 0 and MAX_SCORE."""
    try:
        check_scores(scores, view, rows)
    except WrongAnswerError as error:
        raise _failure(hook, error) from error


def rejection_for(plugin: str, answer: Rejections, kind: int) -> Rejection:
    """Return the rejection that a filter gives for a kind."""
    try:
        found = answer.words(kind)
        rejection(found, (kind,))
    except BaseException as error:
        raise failure(plugin, "Filter", "words", error) from error
    return found._replace(plugin=plugin)


def status_of(answer: Any) -> Code:
    """Return the status that a plugin's result stands for."""
    if answer is None:
        return Code.SUCCESS
    if isinstance(answer, _CODED):
        return answer.code
    if isinstance(answer, Skip):
        return Code.SKIP
    if isinstance(answer, Wait):
        return Code.WAIT
    if isinstance(answer, Rejections) and answer.kinds.any():
        return Code.UNSCHEDULABLE
    return Code.SUCCESS
