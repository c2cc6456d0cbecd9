"""Where metrics plug in: the client calls these, someone else counts.

The names of the methods follow the metrics they feed (rest_client_*, leader_election_*).
"""

from typing import Protocol


class RequestObserver(Protocol):
    """Sees every request at its end and every wait for the rate limiter."""

    def request_done(
        self, verb: str, host: str, code: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """One attempt has ended; `code` is the HTTP status, or "<error>" where there was no answer."""

    def request_retried(self, verb: str, host: str, code: str) -> None:
        """An attempt answered with `code` is made again."""

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """A request waited this long for the client's own rate limit."""


class CredentialsObserver(Protocol):
    """Sees what credential plugins deliver."""

    def plugin_called(self, succeeded: bool, expires_in: float | None) -> None:
        """A credential plugin has run; `expires_in` is how long its answer may be used, None for ever."""


class ElectionObserver(Protocol):
    """Sees whether this instance leads."""

    def leading(self, lease: str, leads: bool) -> None:
        """This instance has begun or ceased to lead."""

    def slow_renewal(self, lease: str) -> None:
        """A renewal had to read the lease first."""

    def new_leader(self, lease: str, identity: str) -> None:
        """Somebody else, or this instance, has been seen to hold the lease; empty: nobody."""


class WorkObserver(Protocol):
    """Is told how a queue of work fares."""

    def added(self, queue: str) -> None: ...

    def retried(self, queue: str) -> None: ...

    def started(self, queue: str, waited: float) -> None:
        """An item is being worked on, after so many seconds."""

    def finished(self, queue: str, seconds: float) -> None:
        """An item is done, after so many seconds of work."""


class Unobserved:
    """Counts nothing: stands in for every observer."""

    def request_done(
        self, verb: str, host: str, code: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None: ...
    def request_retried(self, verb: str, host: str, code: str) -> None: ...
    def rate_limited(self, verb: str, host: str, seconds: float) -> None: ...
    def plugin_called(self, succeeded: bool, expires_in: float | None) -> None: ...
    def leading(self, lease: str, leads: bool) -> None: ...
    def slow_renewal(self, lease: str) -> None: ...
    def new_leader(self, lease: str, identity: str) -> None: ...
    def added(self, queue: str) -> None: ...
    def retried(self, queue: str) -> None: ...
    def started(self, queue: str, waited: float) -> None: ...
    def finished(self, queue: str, seconds: float) -> None: ...


UNOBSERVED = Unobserved()
