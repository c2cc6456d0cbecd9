"""Runs in which every metric gets a value: a scheduler with failures, and a client at a faulty server."""

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import pytest

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.meta import ObjectReference
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.cli.scheduler.reload import Reloader, Setup
from kubestow.client.access import Access, Identity
from kubestow.client.election import Elector, Terms
from kubestow.client.events import EventRecorder
from kubestow.client.execplugin import ExecPlugin
from kubestow.client.informer import Informer
from kubestow.client.leases import LeaseLock
from kubestow.client.ratelimit import TokenBucket
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.requests import Requests
from kubestow.client.resources import PODS
from kubestow.config import Features
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.background import Background, live_answers
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.polling import NoHttp, PolledValue
from kubestow.scheduler.framework.results import Rejection, Wait, unschedulable
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.plugins.volume_binding.claims import PodClaims
from kubestow.scheduler.plugins.volume_binding.plugin import State
from kubestow.server.health import PING, HealthPage
from kubestow.server.http.messages import Request as PageRequest
from kubestow.simulator.in_memory.virtual_loop import VirtualLoop
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.client import ClientMetrics
from kubestow.telemetry.metrics.reload import ReloadMetrics
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.client.doubles import FixedClock, Noted, SkewedClock
from support.client.lease_server import LeaseServer
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run
from support.plugins.device_world import device, device_class, device_slice
from support.scenarios.gangs import add_gang

FEATURES = Features.parse("SchedulerAsyncAPICalls=true,GenericWorkload=true,TopologyAwareWorkloadScheduling=true")


_BUDGET = {
    "metadata": {"name": "low", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "low"}}},
    "status": {"disruptionsAllowed": 0},
}


class Doorman:
    """Lets pods with the label `wait` wait, and rejects those with the label `later` once; no event requeues them."""

    name = "Doorman"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._sent_away: set[str] = set()

    def requeue_on(self) -> list[Any]:
        return []

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait | Rejection | None:
        if "later" in pod.labels and pod.uid not in self._sent_away:
            self._sent_away.add(pod.uid)
            return unschedulable("later")
        return Wait(60.0) if "wait" in pod.labels else None


@contextmanager
def everything_happens(metrics: Metrics) -> Iterator[None]:
    """Run all scenarios, and keep pods waiting in every queue until the end of the block."""
    asyncio.run(_credentials(metrics.client))
    run(_requests(metrics.client))
    run(_watch(metrics.client))
    run(_election(metrics.client))
    HealthPage("healthz", [PING], metrics.health).answer(PageRequest("GET", b"/healthz", {}, b""))
    # A few classes of equal pods are enough to evict the oldest one.
    with (
        patch("kubestow.scheduler.cycle.sharing.sharing._CACHED_ROWS_LIMIT", 128),
        SchedulerHarness(plugins=[Doorman], features=FEATURES, latency=0.25, metrics=metrics.scheduler) as harness,
    ):
        _scheduling(harness)
        _reloading(harness, metrics.reload)
        with _polling(metrics.scheduler):
            yield


@contextmanager
def _polling(metrics: SchedulerMetrics) -> Iterator[None]:
    """Poll a value once."""

    async def fetch() -> int:
        return 1

    loop = VirtualLoop()
    background = Background(
        loop=loop,
        answers=live_answers(metrics),
        http=NoHttp(),
        clock=loop.clock,
        metrics=metrics,
        gate=Gate(),
        notify=lambda *_: None,
    )
    poll = background.poll(PolledValue("Doorman", fetch, interval=1, stale_after=1))
    loop.run_for(0.5)
    yield
    poll.cancel()
    loop.run_for(0)
    loop.close()


def _scheduling(harness: SchedulerHarness) -> None:
    cluster = harness.cluster
    cluster.add(make_node("n1", cpu="64"))
    # A device that never becomes ready, for a claim that is created for the pod.
    cluster.add(device_class(extendedResourceName="example.com/gpu"))
    cluster.add(device_slice("n1", [device("gpu", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])]))
    cluster.add(make_pod("gpu", resources={"example.com/gpu": 1}, priority=10))
    harness.run_for(700.0)
    cluster.delete(cluster.pod("gpu"))
    for kind in range(1, 5):
        for number in range(4):
            cluster.add(make_pod(f"kind-{kind}-{number}", cpu=f"{kind}m", priority=10))
    cluster.add(make_pod("later", labels={"later": "yes"}, priority=10))
    harness.run_for(400.0)
    # Allowed before the write that it waits is sent: its binding has to wait for that write.
    cluster.add(make_pod("short", labels={"wait": "yes"}, priority=10))
    harness.run_for(0.1)
    for waiting in harness.core.waiting_pods:
        waiting.allow(Doorman.name)
    cluster.add(convert(PodDisruptionBudget, _BUDGET))
    cluster.add(make_pod("low", cpu="60", priority=1, labels={"app": "low"}))
    harness.run_for(5.0)
    cluster.add(make_pod("high", cpu="60", priority=5))
    harness.run_for(5.0)
    add_gang(harness, "gang", 2, cpu="30", priority=7)
    harness.run_for(60.0)
    add_gang(harness, "top", 1, cpu="60", priority=8)
    harness.run_for(5.0)
    profile = harness.core.profiles["default-scheduler"]
    volumes: Any = State(PodClaims(delayed=[None]))  # type: ignore[list-item]
    with pytest.raises(Exception, match="not found"):
        profile.plugins["VolumeBinding"].reserve(volumes, PodInfo(make_pod("p")), "gone")
    cluster.add(make_pod("huge", cpu="100", priority=0))
    cluster.add(make_pod("waiting", labels={"wait": "yes"}, priority=10))
    harness.run_for(1.0)
    cluster.add(make_node("n2", cpu="1"))
    harness.run_for(1.0)


def _reloading(harness: SchedulerHarness, metrics: ReloadMetrics) -> None:
    """Reload an unchanged configuration."""
    setup = Setup(config.default(FEATURES), in_tree_registry(), PluginCollection())

    async def load() -> Setup:
        return setup

    reloader = Reloader(harness.core, setup, load, list, lambda *_: None, metrics)
    harness.run_until(harness.loop.create_task(reloader.reload()).done)


async def _requests(metrics: ClientMetrics) -> None:
    """Write events at a server that is too busy at first, then drops a connection."""
    asked = 0

    async def troubled(request: Request, answer: Answer) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            answer.error(429, "TooManyRequests", "busy", Retry_After="1")
        elif asked == 2:
            answer.drop()
        else:
            answer.reply(201, {})

    async with serving(troubled) as server:
        with opened(server, metrics=metrics) as channel:
            metrics.transports.track(lambda: 1)
            client = client_of(channel, TokenBucket(50, 1, asyncio.get_running_loop()), metrics=metrics)
            events = EventRecorder(
                Requests(client), hostname="vm", clock=FixedClock(), random=lambda: 0.5, metrics=metrics
            )
            writing = asyncio.create_task(events.run())
            pod = ObjectReference(kind="Pod", namespace="default", name="p", uid="u", apiVersion="v1")
            events.record("default-scheduler", pod, "Normal", "Scheduled", "Binding", "Successfully assigned")
            assert await events.drain(60)
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing


async def _watch(metrics: ClientMetrics) -> None:
    """Watch pods until they are synced."""

    async def stream(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.bookmark("5", ends_initial=True)

    async with serving(stream) as server:
        with opened(server) as channel:
            informer = Informer(PODS, Noted())
            reflector = Reflector(client_of(channel), informer, lambda: 0.5, Refusals(), metrics)
            watching = asyncio.create_task(reflector.run())
            await informer.synced.wait()
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def _election(metrics: ClientMetrics) -> None:
    """Run a leader whose lease is changed by another client."""
    house = LeaseServer()
    async with serving(house) as server:
        with opened(server) as channel:
            lock = LeaseLock(Requests(client_of(channel)), "kube-system", "kube-scheduler", "one")
            elector = Elector(
                lock, Terms(), clock=SkewedClock(), random=lambda: 0.5, announce=lambda *_: None, metrics=metrics
            )

            async def lead() -> None:
                await asyncio.sleep(3)
                assert house.lease is not None
                house.lease["metadata"]["resourceVersion"] = "7"
                await asyncio.sleep(10)

            await elector.run(lead)


async def _credentials(metrics: ClientMetrics) -> None:
    """Run a plugin twice, because the server rejects its token."""

    async def refuse(request: Request, answer: Answer) -> None:
        answer.error(401, "Unauthorized", "Unauthorized")

    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'
    plugin = ExecPlugin(
        "/bin/sh",
        "client.authentication.k8s.io/v1",
        args=("-c", f"echo {shlex.quote(credential)}"),
        interactive_mode="Never",
        place="users[u].user.exec",
    )
    async with serving(refuse) as server:
        access = Access("test", f"http://127.0.0.1:{server.port}", identity=Identity(plugin=plugin))
        with opened(server, access, metrics=metrics) as channel, pytest.raises(Exception, match="Unauthorized"):
            await client_of(channel).request("GET", "/")
