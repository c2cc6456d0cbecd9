"""The clients of the scheduler, on two channels to the API server: one for everything but the lease, one for the lease.

The lease has its own connections, so that slow bindings cannot prevent the leader from renewing.
"""

import asyncio
from collections.abc import Callable
from functools import partial

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
"""Maximum number of concurrent requests for the lease."""


class Clients(msgspec.Struct, frozen=True):
    """The clients by purpose; each has its own rate limit, with the rates of the configuration."""

    watches: ApiClient
    writes: Requests
    events: Requests
    leases: Requests
    _channels: tuple[Channel, ...]

    @property
    def channel_count(self) -> int:
        return len(self._channels)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


def configured_access(configuration: SchedulerConfiguration, master: str, file: str) -> Access:
    """Return the address and the credentials that the configuration names.

    `file` is the path of the configuration, empty for flags. Raises CredentialsError.
    """
    advice = f"set clientConnection.kubeconfig in {file}" if file else "give --kubeconfig"
    return find_access(configuration.clientConnection.kubeconfig, master, advice=advice)


def user_agent(purpose: str) -> str:
    """Return the User-Agent, which is also the field manager of all writes: it must not depend on the command line."""
    build = BuildInfo()
    return f"kubestow/{build.git_version} ({build.platform}) kubernetes/{purpose}"


async def get_once(access: Access, path: str, clock: Clock) -> bytes:
    """Return the body of one GET, sent before the scheduler starts. Raises CallError."""
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
    """Create the clients without connecting yet. Call it inside the running loop. Raises CredentialsError."""
    loop = asyncio.get_running_loop()
    connection = configuration.clientConnection
    half_deadline = configuration.leaderElection.renewDeadline.seconds / 2
    main = open_channel(access, clock=clock, metrics=metrics)
    lease = open_channel(access, most_requests=_LEASE_REQUESTS, clock=clock, metrics=metrics)

    def limiter() -> TokenBucket:
        return TokenBucket(connection.qps, connection.burst, loop)

    new_client = partial(client, main, user_agent=user_agent("scheduler"), metrics=metrics, unlimited_wait=True)
    electing = ApiClient(
        lease, user_agent=user_agent("leader-election"), limiter=limiter(), seconds=half_deadline, metrics=metrics
    )
    clients = Clients(
        new_client(limiter=limiter()),
        Requests(new_client(limiter=limiter())),
        # No pod waits for an event.
        Requests(new_client(limiter=limiter(), low_priority=True)),
        Requests(electing, half_deadline),
        (main, lease),
    )
    metrics.transports.track(lambda: clients.channel_count)
    return clients
