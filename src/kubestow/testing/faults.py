"""What goes wrong between a scheduler and its API server, on demand.

faults.fail("bind", "Conflict")                          the next binding is refused
faults.fail("bind", "Timeout", times=None)               no binding is ever answered
faults.fail("delete_pod", "Forbidden", skip=2)           the third deletion is refused
faults.fail("bind", "Timeout", takes_effect=True)        the pod is bound, but nobody is told
faults.fail("*", "NotFound", times=5)                    the next five calls, whatever they are
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kubestow.client.errors import ConnectError, ConnectionLostError, TimedOutError, api_error
from kubestow.model.envelopes import Status

ANY_CALL = "*"
TIMEOUT_SECONDS = 10.0
"""How long a call takes that is not answered."""

_CODES = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "Conflict": 409,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
}
_TRANSPORT: dict[str, Callable[[str], Exception]] = {
    "Timeout": lambda call: TimedOutError(f"{call}: no answer within {TIMEOUT_SECONDS:g} s"),
    "ConnectionLost": lambda call: ConnectionLostError(f"{call}: the connection was lost"),
    "ConnectionRefused": lambda call: ConnectError(f"{call}: connection refused"),
}

PROBLEMS = (*_CODES, *_TRANSPORT)
"""The kinds of failure, by name."""


def failure(call: str, problem: str, message: str = "") -> Exception:
    """The exception by which the API client reports a problem."""
    if problem in _TRANSPORT:
        return _TRANSPORT[problem](call)
    code = _CODES.get(problem)
    if code is None:
        raise ValueError(f"no such problem: {problem!r}; there are: {', '.join(PROBLEMS)}")
    status = Status(status="Failure", reason=problem, code=code, message=message or f"{problem} was asked for")
    return api_error(call, code, msgspec.json.encode(status))


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
