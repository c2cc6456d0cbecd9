"""What goes wrong between a scheduler and its API server, on demand.

faults.fail("bind", "Conflict")                          the next binding is refused
faults.fail("bind", "Timeout", times=None)               no binding is ever answered
faults.fail("delete_pod", "Forbidden", skip=2)           the third deletion is refused
faults.fail("bind", "Timeout", takes_effect=True)        the pod is bound, but nobody is told
faults.fail("*", "NotFound", times=5)                    the next five calls, whatever they are
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
"""How long a call takes that is not answered."""

_TRANSPORT: dict[str, Callable[[str], CallError]] = {
    "Timeout": lambda call: TimedOutError(f"{call}: no answer within {TIMEOUT_SECONDS:g} s"),
    "ConnectionLost": lambda call: ConnectionLostError(f"{call}: the connection was lost"),
    "ConnectionRefused": lambda call: ConnectError(f"{call}: connection refused"),
    "BadAnswer": lambda call: BadAnswerError(f"{call}: the answer is not HTTP/1.1"),
}

PROBLEMS = tuple({**REASONS, **_TRANSPORT})
"""The kinds of failure, by name."""


def failure(call: str, problem: str, message: str = "") -> CallError:
    """The exception by which the API client reports a problem."""
    if problem in _TRANSPORT:
        return _TRANSPORT[problem](call)
    if problem not in REASONS:
        raise ValueError(f"no such problem: {problem!r}; there are: {', '.join(PROBLEMS)}")
    code, _ = REASONS[problem]
    status = Status(status="Failure", reason=problem, code=code, message=message or f"{problem} was asked for")
    return failure_of(call, code, status)


@dataclass(slots=True)
class Fault:
    """One rule; ask it for every call."""

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
    """The faults in force; the first one that strikes a call counts."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def fail(
        self, call: str, problem: str, *, times: int | None = 1, skip: int = 0, takes_effect: bool = False
    ) -> None:
        """Fail calls of a kind (`*`: any): so many of them (None: all), after having let some through.

        `problem` is one of PROBLEMS. With `takes_effect` the server does what was asked before the call fails.
        """
        failure(call, problem)
        self._faults.append(Fault(call, problem, times, skip, takes_effect))

    def clear(self) -> None:
        """From now on all goes well."""
        self._faults.clear()

    def striking(self, call: str) -> Fault | None:
        """The fault that a call meets."""
        return next((fault for fault in self._faults if fault.strikes(call)), None)
