"""Failures of API calls on demand.

faults.fail("bind", "Conflict")                          the next binding is rejected
faults.fail("bind", "Timeout", times=None)               no binding is ever answered
faults.fail("delete_pod", "Forbidden", skip=2)           the third deletion is rejected
faults.fail("bind", "Timeout", takes_effect=True)        the pod is bound, but the caller gets no answer
faults.fail("*", "NotFound", times=5)                    the next five calls of any kind
"""

from collections.abc import Callable
from dataclasses import dataclass

from kubestow.api.envelopes import Status
from kubestow.api.failures import (
    REASONS,
    BadAnswerError,
    CallError,
    ConnectError,
    ConnectionLostError,
    TimedOutError,
    failure_of,
)

ANY_CALL = "*"
TIMEOUT_SECONDS = 10.0
"""Duration of a call that gets no answer."""

_TRANSPORT: dict[str, Callable[[str], CallError]] = {
    "Timeout": lambda call: TimedOutError(f"{call}: no answer within {TIMEOUT_SECONDS:g} s"),
    "ConnectionLost": lambda call: ConnectionLostError(f"{call}: the connection was lost"),
    "ConnectionRefused": lambda call: ConnectError(f"{call}: connection refused"),
    "BadAnswer": lambda call: BadAnswerError(f"{call}: the answer is not HTTP/1.1"),
}

PROBLEMS = tuple({**REASONS, **_TRANSPORT})
"""Names of the kinds of failure."""


def failure(call: str, problem: str, message: str = "") -> CallError:
    """Return the exception with which the API client reports a problem."""
    if problem in _TRANSPORT:
        return _TRANSPORT[problem](call)
    if problem not in REASONS:
        raise ValueError(f"no such problem: {problem!r}; there are: {', '.join(PROBLEMS)}")
    code, _ = REASONS[problem]
    status = Status(status="Failure", reason=problem, code=code, message=message or f"{problem} was asked for")
    return failure_of(call, code, status)


@dataclass(slots=True)
class Fault:
    """One rule; `strikes` must be called for every call."""

    call: str
    problem: str
    times: int | None
    skip: int
    takes_effect: bool

    def strikes(self, call: str) -> bool:
        if self.call not in (ANY_CALL, call) or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """The active faults; the first match applies."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def fail(
        self, call: str, problem: str, *, times: int | None = 1, skip: int = 0, takes_effect: bool = False
    ) -> None:
        """Fail calls of a kind (`*`: any): the next `times` calls (None: all), after `skip` successful ones.

        `problem` is one of PROBLEMS. With `takes_effect` the server executes the call before it fails.
        """
        failure(call, problem)
        self._faults.append(Fault(call, problem, times, skip, takes_effect))

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def striking(self, call: str) -> Fault | None:
        """Return the fault that applies to a call, and count the call."""
        return next((fault for fault in self._faults if fault.strikes(call)), None)
