"""Coordinated elections: the API server chooses the leader among the candidates."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubestow.api.failures import LeaseLostError
from kubestow.client.api import ApiClient
from kubestow.client.candidate import RENEW_SECONDS, Candidate
from kubestow.client.election import Elector, Terms
from kubestow.client.leases import LeaseLock
from kubestow.client.requests import Requests
from support.client.doubles import SkewedClock
from support.client.lease_server import LeaseServer
from support.client.scripted import Answer, Request, opened, serving
from support.client.virtualtime import run

LATER = "2999-01-01T00:00:00.000000Z"


class Coordinator(LeaseServer):
    """A server that also stores candidates; the test chooses among them."""

    def __init__(self) -> None:
        super().__init__()
        self.candidates: dict[str, dict[str, Any]] = {}
        self.renewals: list[tuple[float, str]] = []
        self.serves_candidates = True

    async def __call__(self, request: Request, answer: Answer) -> None:
        if "/leasecandidates" not in request.path:
            await super().__call__(request, answer)
            return
        name = request.path.partition("?")[0].rpartition("/")[2]
        if not self.serves_candidates or (request.method == "GET" and name not in self.candidates):
            answer.error(404, "NotFound", "no such thing")
        elif request.method == "GET":
            answer.reply(200, self.candidates[name])
        else:
            name = request.json["metadata"]["name"]
            self.candidates[name] = request.json
            self.renewals.append((asyncio.get_running_loop().time(), name))
            answer.reply(200 if request.method == "PUT" else 201, request.json)

    def choose(self, name: str) -> None:
        """Set the holder as the server does: without an acquire time."""
        self.version += 1
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 5,
            "acquireTime": None,
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 3,
            "strategy": "OldestEmulationVersion",
        }
        metadata = {"name": "kube-scheduler", "resourceVersion": str(self.version)}
        self.lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}


class Standing:
    """A candidate and its elector."""

    def __init__(self, requests: Requests) -> None:
        lock = LeaseLock(requests, "kube-system", "kube-scheduler", "me")
        clock = SkewedClock(0.0)
        self.elector = Elector(
            lock, Terms(), clock=clock, random=lambda: 0.5, announce=lambda *_: None, coordinated=True
        )
        self.candidate = asyncio.create_task(Candidate(requests, lock, clock, 2.0, 35).run())
        self.leading = asyncio.Event()
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.leading.set()
        await asyncio.Event().wait()

    async def stop(self) -> None:
        for task in (self.candidate, self.task):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, LeaseLostError):
                await task


@contextlib.asynccontextmanager
async def standing() -> AsyncIterator[tuple[Coordinator, Standing]]:
    server_side = Coordinator()
    async with serving(server_side) as server:
        with opened(server) as channel:
            one = Standing(Requests(ApiClient(channel, user_agent="me", seconds=5.0)))
            try:
                yield server_side, one
            finally:
                await one.stop()


def test_a_candidate_is_created_with_its_version() -> None:
    """The candidate contains its version and strategy; it does not acquire the lease itself."""

    async def main() -> None:
        async with standing() as (server, one):
            await asyncio.sleep(10)
            spec = server.candidates["me"]["spec"]
            assert (spec["leaseName"], spec["strategy"]) == ("kube-scheduler", "OldestEmulationVersion")
            assert (spec["binaryVersion"], spec["emulationVersion"]) == ("1.37.0", "1.35.0")
            assert server.lease is None
            assert not one.elector.leads

    run(main())


def test_a_ping_is_answered() -> None:
    """A ping is answered at the next read; without pings the candidate is renewed every five minutes."""

    async def main() -> None:
        async with standing() as (server, _):
            await asyncio.sleep(60)
            assert len(server.renewals) == 1
            server.candidates["me"]["spec"]["pingTime"] = LATER
            await asyncio.sleep(1.5)
            assert len(server.renewals) == 2
            server.candidates["me"]["spec"]["pingTime"] = None
            await asyncio.sleep(RENEW_SECONDS + 3)
            assert len(server.renewals) == 3

    run(main())


def test_the_chosen_candidate_leads_and_keeps_the_strategy() -> None:
    """The lease is renewed with the fields that the server set; once released, the server can assign it to another."""

    async def main() -> None:
        async with standing() as (server, one):
            server.choose("me")
            await one.leading.wait()
            await asyncio.sleep(30)
            assert one.elector.may_act
            assert server.lease is not None
            assert server.lease["spec"]["strategy"] == "OldestEmulationVersion"
            assert server.lease["spec"]["acquireTime"] is None
            assert server.lease["spec"]["leaseDurationSeconds"] == 15
            await one.stop()
            assert server.holder == ""
            assert server.lease["spec"]["strategy"] == "OldestEmulationVersion"

    run(main())


def test_an_expired_lease_is_not_acquired() -> None:
    """Only the server assigns the lease to another holder."""

    async def main() -> None:
        async with standing() as (server, one):
            server.choose("another")
            await asyncio.sleep(120)
            assert server.holder == "another"
            assert not one.elector.leads

    run(main())


def test_a_preferred_holder_ends_the_lead() -> None:
    """The leader stops at once and does not renew."""

    async def main() -> None:
        async with standing() as (server, one):
            server.choose("me")
            await one.leading.wait()
            assert server.lease is not None
            server.lease["spec"]["preferredHolder"] = "newer"
            with pytest.raises(LeaseLostError):
                await one.task
            assert server.lease["spec"]["preferredHolder"] == "newer"
            assert not one.elector.may_act

    run(main())


def test_missing_lease_candidates_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """The error contains advice, and there is no leader."""

    async def main() -> None:
        async with standing() as (server, one):
            server.serves_candidates = False
            await asyncio.sleep(60)
            assert not one.elector.leads

    run(main())
    logged = [record.getMessage() for record in caplog.records if "Unable to renew" in record.getMessage()]
    assert len(logged) == 1
