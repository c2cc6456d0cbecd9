"""A candidate in a coordinated election, in which the API server chooses the leader among the LeaseCandidates.

A LeaseCandidate contains the version of the instance. The server checks that a candidate is alive by setting a pingTime
later than its renewTime; one that responds with a new renewTime can be chosen, and the server writes its name into the
lease. A candidate without a ping still renews every five minutes, because the server removes stale candidates.
"""

import asyncio
from typing import Any

from kubestow.api.failures import CallError, NotFoundError
from kubestow.api.timestamps import format_micro_time
from kubestow.client.leases import LeaseLock
from kubestow.client.requests import Requests, path_of
from kubestow.clock import Clock
from kubestow.telemetry.build import KUBERNETES
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

STRATEGY = "OldestEmulationVersion"
RENEW_SECONDS = 300.0
ADVICE = (
    "start kube-apiserver v1.33 or newer with --feature-gates=CoordinatedLeaderElection=true "
    "--runtime-config=coordination.k8s.io/v1beta1=true, or turn the gate off here"
)
"""Logged if the server does not have LeaseCandidates."""


class Candidate:
    """One contender, under the identity of its lock."""

    def __init__(self, requests: Requests, lock: LeaseLock, clock: Clock, pause: float, emulated: int) -> None:
        """`pause`: seconds between two reads of the LeaseCandidate; `emulated`: the emulated minor version."""
        self._requests = requests
        self._lock = lock
        self._clock = clock
        self._pause = pause
        self._emulated = emulated
        self._loop = asyncio.get_running_loop()
        self._renewed_at = float("-inf")
        self._problem = ""

    async def run(self) -> None:
        """Keep the LeaseCandidate up to date until cancelled."""
        while True:
            try:
                await self._renew()
                self._problem = ""
            except CallError as error:
                if str(error) != self._problem:
                    # Logged once per problem. Without a LeaseCandidate this instance cannot be elected.
                    log.error("Unable to renew lease candidate", err=error, lease=str(self._lock), **_advice(error))
                self._problem = str(error)
            await asyncio.sleep(self._pause)

    async def _renew(self) -> None:
        namespace, name = self._lock.namespace, self._lock.identity
        now = format_micro_time(self._clock.now())
        collection = path_of("coordination.k8s.io/v1beta1", "leasecandidates", namespace)
        try:
            found = await self._requests.fetch(dict[str, Any], "GET", f"{collection}/{name}")
        except NotFoundError:
            await self._requests.send("POST", collection, self._new(now))
            log.info("Created lease candidate", v=2, lease=str(self._lock), candidate=name)
        else:
            spec = found.get("spec") or {}
            is_pinged = (spec.get("pingTime") or "") > (spec.get("renewTime") or "")
            if not is_pinged and self._loop.time() < self._renewed_at + RENEW_SECONDS:
                return
            candidate = {**found, "spec": {**spec, "renewTime": now}}
            await self._requests.send("PUT", f"{collection}/{name}", candidate)
        self._renewed_at = self._loop.time()

    def _new(self, now: str) -> dict[str, object]:
        return {
            "kind": "LeaseCandidate",
            "apiVersion": "coordination.k8s.io/v1beta1",
            "metadata": {"name": self._lock.identity, "namespace": self._lock.namespace},
            "spec": {
                "leaseName": self._lock.name,
                "binaryVersion": KUBERNETES,
                "emulationVersion": f"1.{self._emulated}.0",
                "strategy": STRATEGY,
                "renewTime": now,
            },
        }


def _advice(error: CallError) -> dict[str, str]:
    return {"advice": ADVICE} if isinstance(error, NotFoundError) else {}
