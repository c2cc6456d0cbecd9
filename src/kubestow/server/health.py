"""Health pages: /healthz, /livez, /readyz, with a page for each check below them.

A page contains `ok`, or with ?verbose the result of each check; ?exclude=NAME skips a check. The reason of a failure is
not on the page itself, which is open to all, but on the page of the check and in the log.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qsl

from kubestow.client.election import Elector
from kubestow.server.http.messages import Request, Response
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.health import HealthMetrics

log = get_logger(__name__)

TEXT = b"text/plain; charset=utf-8"


class Check(NamedTuple):
    """A health check; `problem` returns the reason of a failure, or None if the check passes."""

    name: str
    problem: Callable[[], str | None]


PING = Check("ping", lambda: None)

OVERDUE_SECONDS = 20.0
"""Seconds after the end of its lease for which a leader that has not stopped still counts as healthy."""


def lease_check(elector: Elector) -> Check:
    """Return a check that fails if the instance still leads after its lease has expired."""

    def problem() -> str | None:
        overdue = elector.overdue(OVERDUE_SECONDS)
        return f"failed election to renew leadership on lease {elector.lease}" if overdue else None

    return Check("leaderElection", problem)


def sync_check(is_synced: Callable[[], bool], unsynced: Callable[[], list[str]]) -> Check:
    """Return a check that passes once the initial objects of all resources have been processed."""

    def problem() -> str | None:
        if is_synced():
            return None
        return f"handlers are not fully synchronized: {', '.join(unsynced()) or 'processing initial objects'}"

    return Check("sched-handler-sync", problem)


class HealthPage:
    """A health page; `name` is its path without the slash."""

    def __init__(self, name: str, checks: Sequence[Check], metrics: HealthMetrics) -> None:
        self.name = name
        self.checks = tuple(checks) or (PING,)
        self._metrics = metrics

    def pages(self) -> dict[str, Callable[[Request], Response]]:
        """Return this page and those of its checks, by path."""
        checks = {f"/{self.name}/{check.name}": partial(self.answer_check, check) for check in self.checks}
        return {f"/{self.name}": self.answer, **checks}

    def answer(self, request: Request) -> Response:
        """Run the checks and return the page."""
        wanted = parse_qsl(request.raw_query.decode("latin-1"), keep_blank_values=True)
        excluded = {value for key, value in wanted if key == "exclude"}
        lines, failed = [], []
        for check in self.checks:
            if check.name in excluded:
                lines.append(f"[+]{check.name} excluded: ok\n")
                continue
            problem = check.problem()
            self._metrics.passed.set(int(problem is None), check.name, self.name)
            self._metrics.checks.inc(check.name, "success" if problem is None else "error", self.name)
            if problem is None:
                lines.append(f"[+]{check.name} ok\n")
            else:
                lines.append(f"[-]{check.name} failed: reason withheld\n")
                failed.append(f"{check.name}: {problem}")
        unknown = sorted(excluded - {check.name for check in self.checks})
        if unknown:
            names = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            log.info("Health check failed", v=2, page=self.name, failed=failed)
            return Response(500, f"{''.join(lines)}{self.name} check failed\n".encode(), content_type=TEXT)
        if any(key == "verbose" for key, _ in wanted):
            return Response(200, f"{''.join(lines)}{self.name} check passed\n".encode(), content_type=TEXT)
        return Response(200, b"ok", content_type=TEXT)

    @staticmethod
    def answer_check(check: Check, _: Request) -> Response:
        """Run one check and return its page."""
        problem = check.problem()
        if problem is None:
            return Response(200, b"ok", content_type=TEXT)
        return Response(500, f"internal server error: {problem}\n".encode(), content_type=TEXT)


def metrics_page(render: Callable[[str], tuple[bytes, str]], request: Request) -> Response:
    """Return metrics; `render` returns them in the format for an Accept header, and their Content-Type."""
    body, content_type = render(request.header(b"accept"))
    return Response(200, body, content_type=content_type.encode())
