"""The one place from which plugins are called: it counts, times, checks and attributes every call.

Whatever goes wrong in a plugin, or with what it answers, comes out as a PluginError that names it. Timing every call of
every cycle would cost more than some plugins do; a caller is told at the start of a cycle whether this is one of the
few to time.
"""

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
    told,
)
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

T = TypeVar("T")
Args = TypeVarTuple("Args")

_FRAMEWORK = f"{Path(__file__).parent}{os.sep}"
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"

_CODED = (Rejection, PostFilterResult)


def failure(plugin: str, point: str, method: str, error: BaseException) -> PluginError:
    """What went wrong in a plugin, attributed; raises it as it is where it is none of the plugin's business."""
    if isinstance(error, PluginError):
        return error
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, WrongAnswerError):
        return PluginError(plugin, point, f"{method} {error}")
    words = told(error)
    place = _place(error)
    if place:
        log.error("Plugin raised", err=words, plugin=plugin, extensionPoint=point, at=place)
    return PluginError(plugin, point, words)


def _place(error: BaseException) -> str:
    """The deepest line of a plugin's own file that an exception came through; empty for the scheduler's own plugins."""
    lines = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    beyond = [line for line in lines if not line[0].startswith(_FRAMEWORK)]
    if not beyond or beyond[0][0].startswith(_PACKAGE):
        return ""
    file = beyond[0][0]
    return f"{file}:{[number for name, number in beyond if name == file][-1]}"


def _failure(hook: Hook, error: BaseException) -> PluginError:
    return failure(hook.name, hook.point, hook.method, error)


def _checked(hook: Hook, answer: Any, args: tuple[Any, ...]) -> Any:
    if answer is not None:
        if hook.check is not None:
            hook.check(answer, args)
    elif hook.must_answer:
        raise WrongAnswerError("must return something, not None")
    return answer


class Caller:
    """Calls plugins for one profile."""

    def __init__(self, profile: str, metrics: SchedulerMetrics, stopwatch: Callable[[], float]) -> None:
        self._profile = profile
        self._plugin_took = metrics.plugin_execution_seconds.observe
        self._point_took = metrics.extension_point_seconds.observe
        self._stopwatch = stopwatch
        self.started = stopwatch
        """Tells when a point begins to run."""
        self.timing = False

    def call(self, hook: Hook, *args: Any, rows: int = 1) -> Any:
        """Call a plugin. What concerns no rows, and no pod whose turn it is, is neither counted nor timed."""
        if self.timing and hook.is_timed and rows:
            return self._call_timed(hook, args, rows)
        hook.evaluations += rows
        try:
            answer = hook.function(*args)
            if answer is not None:
                if hook.check is not None:
                    hook.check(answer, args)
            elif hook.must_answer:
                raise WrongAnswerError("must return something, not None")
        except BaseException as error:
            raise _failure(hook, error) from error
        return answer

    def call_row(self, hook: Hook, state: Any, table: NodeView, row: int) -> Any:
        """Call a plugin about one row: what is asked most often, so it is as short as can be."""
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
            self._plugin_took(seconds, hook.point, hook.name, status.label)
        return answer

    async def call_async(self, hook: Hook, *args: Any) -> Any:
        """The same for a plugin that awaits."""
        hook.evaluations += 1
        start = self._stopwatch()
        status = Code.ERROR
        try:
            answer = _checked(hook, await hook.function(*args), args)
            status = status_of(answer)
        except (Exception, SystemExit) as error:
            # What else there is has come from outside: the call was cancelled.
            raise _failure(hook, error) from error
        finally:
            seconds = self._stopwatch() - start
            self._plugin_took(seconds, hook.point, hook.name, status.label)
        return answer

    def sign(self, hooks: Sequence[Hook], pod: Any) -> tuple[Hashable, ...]:
        """Return what each plugin signs. Raises PluginError."""
        try:
            signed = tuple([hook.function(pod) for hook in hooks])
            # Raises TypeError if one of them cannot be hashed.
            hash(signed)
        except BaseException:
            # Call them one by one to name the one that fails.
            return tuple([self.call(hook, pod) for hook in hooks])
        return signed

    def first_refusal(self, hooks: Sequence[Hook], pod: Any) -> Rejection | None:
        """What the first of some plugins says that refuses a pod; asked of every pod, so it is one step for all."""
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

    def failed(self, error: PluginError) -> None:
        """A plugin failed, and the caller goes on as if it had not."""
        log.unexpected("Plugin failed; nothing comes of it", err=error)

    def run_point(self, point: str, function: Callable[[*Args], T], *args: *Args) -> T:
        """Call the function that runs an extension point, and record its duration; an exception counts as an error."""
        start, status = self._stopwatch(), Code.ERROR
        try:
            result = function(*args)
            status = Code.SUCCESS
            return result
        finally:
            self.finished(point, status, start)

    def finished(self, point: str, status: Code, start: float, end: float | None = None) -> float:
        """A point has run for all its plugins; now, or at `end`, which is returned."""
        end = self._stopwatch() if end is None else end
        self._point_took(end - start, point, self._profile, status.label)
        return end


def in_range(hook: Hook, scores: IntArray, view: NodeView, rows: IntArray) -> None:
    """Raises PluginError if the score that a plugin gave a row is not between 0 and MAX_SCORE."""
    try:
        check_scores(scores, view, rows)
    except WrongAnswerError as error:
        raise _failure(hook, error) from error


def worded(plugin: str, answer: Rejections, kind: int) -> Rejection:
    """A refusal in the words of the filter that gave it."""
    try:
        words = answer.words(kind)
        rejection(words, (kind,))
    except BaseException as error:
        raise failure(plugin, "Filter", "words", error) from error
    return words._replace(plugin=plugin)


def status_of(answer: Any) -> Code:
    """What a plugin's answer amounts to."""
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
