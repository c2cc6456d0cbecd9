"""The ways to the API server: one for everything, and one of its own for the lease.

The lease has its own connections, so that a server that is slow to bind pods cannot keep the leader from renewing.
"""

import asyncio
from collections.abc import Callable

import msgspec

from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient, Channel
from kubestow.client.kubeconfig import find_access
from kubestow.client.ratelimit import TokenBucket
from kubestow.client.requests import Requests
from kubestow.clock import Clock
from kubestow.config.configuration import SchedulerConfiguration
from kubestow.telemetry.build import BuildInfo
from kubestow.telemetry.metrics.client import ClientMetrics

_LEASE_REQUESTS = 4
"""Requests about the lease under way at a time."""


class Clients(msgspec.Struct, frozen=True):
    """Who sends what; each has a rate limit of its own, as the configuration says."""

    watches: ApiClient
    writes: Requests
    events: Requests
    leases: Requests
    _channels: tuple[Channel, ...]

    @property
    def ways(self) -> int:
        """How many ways to servers there are."""
        return len(self._channels)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


def access_of(configuration: SchedulerConfiguration, master: str) -> Access:
    """Where the API server is and who we are there; raises CredentialsError."""
    return find_access(configuration.clientConnection.kubeconfig, master)


def user_agent(purpose: str) -> str:
    """How we introduce ourselves, and who owns the fields we set; the same however the program was started."""
    build = BuildInfo()
    return f"kubestow/{build.git_version} ({build.platform}) kubernetes/{purpose}"


async def get_once(access: Access, path: str, clock: Clock) -> bytes:
    """The answer to a single request before the scheduler starts; raises ClientError."""
    channel = open_channel(access, clock=clock)
    try:
        client = ApiClient(channel, user_agent=user_agent("scheduler"))
        return (await client.request("GET", path)).body
    finally:
        await channel.closed()


def open_clients(
    configuration: SchedulerConfiguration,
    access: Access,
    clock: Clock,
    metrics: ClientMetrics,
    client: Callable[..., ApiClient] = ApiClient,
) -> Clients:
    """Build the clients, without talking yet; call it inside the running loop. Raises CredentialsError."""
    loop = asyncio.get_running_loop()
    connection = configuration.clientConnection
    half_deadline = configuration.leaderElection.renewDeadline.seconds / 2
    main = open_channel(access, clock=clock, metrics=metrics)
    lease = open_channel(access, most_requests=_LEASE_REQUESTS, clock=clock, metrics=metrics)

    def limiter() -> TokenBucket:
        return TokenBucket(connection.qps, connection.burst, loop)

    def patient(*, leisurely: bool = False) -> ApiClient:
        agent = user_agent("scheduler")
        return client(main, user_agent=agent, limiter=limiter(), metrics=metrics, patient=True, leisurely=leisurely)

    electing = ApiClient(
        lease, user_agent=user_agent("leader-election"), limiter=limiter(), seconds=half_deadline, metrics=metrics
    )
    clients = Clients(
        patient(),
        Requests(patient()),
        # No pod waits for an event.
        Requests(patient(leisurely=True)),
        Requests(electing, half_deadline),
        (main, lease),
    )
    metrics.transports.track(lambda: clients.ways)
    return clients
