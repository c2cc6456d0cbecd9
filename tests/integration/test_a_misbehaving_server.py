"""Whatever the server does, no pod is lost or bound twice, and the scheduler's state is correct in the end."""

import asyncio
import logging
from pathlib import Path

import pytest

from kubestow.apiserver import ControlPlane, Options
from kubestow.cli.scheduler.live import LiveOptions, LiveScheduler
from kubestow.client.access import Access, Identity
from kubestow.client.tls import TlsSettings
from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request
from support.client.doubles import SkewedClock
from support.client.virtualtime import run
from support.free_ports import free_port
from support.integration.cluster import (
    TOKEN,
    Application,
    Cluster,
    Instance,
    eventually,
    node,
    pod,
    running_cluster,
    running_scheduler,
    settings,
)
from support.integration.misbehaviour import OF_WATCHES, Misbehaving, lose_the_answer, refuse


async def _knows_the_truth(instance: Instance) -> bool:
    return not await instance.live.inspection.compare_with_server()


@pytest.mark.parametrize("seed", range(4))
def test_no_pod_is_lost(seed: int) -> None:
    """Drops, stalls, 410, 429, 500, truncated lines, invalid JSON, lost responses: every pod is still bound."""
    chaos = Misbehaving(seed)

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(*(node(f"n{i}") for i in range(3)))
            async with running_scheduler(cluster, wrap=chaos) as instance:
                for i in range(60):
                    await cluster.add(pod(f"p{i}"))
                    await asyncio.sleep(0.3)
                await eventually(lambda: sum(chaos.happened.values()) > 15, 600.0)
                chaos.behave()
                await eventually(cluster.all_bound, 600.0)
                await eventually(lambda: _knows_the_truth(instance), 600.0)

    run(main())
    assert any(fault.__name__ in chaos.happened for fault in OF_WATCHES)


def test_a_pod_bound_without_a_response_is_not_reported_as_failed() -> None:
    """The binding was executed, and the pod's condition says so; it is not overwritten."""

    def losing(application: Application) -> Application:
        def answer(request: Request, connection: Connection) -> None:
            lost = request.method == "POST" and request.path.endswith("/binding")
            lose_the_answer(application, request, connection) if lost else application(request, connection)

        return answer

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"))
            async with running_scheduler(cluster, wrap=losing) as instance:
                await cluster.add(*(pod(f"p{i}") for i in range(10)))
                await eventually(cluster.all_bound)
                await eventually(lambda: _knows_the_truth(instance))
                await asyncio.sleep(30.0)
                for found in (await cluster.pods()).values():
                    conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
                    assert conditions["PodScheduled"] == "True"

    run(main())


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [(404, "NotFound", "does not have them"), (403, "Forbidden", "forbids to list and watch them")],
)
def test_an_unreadable_api_group_is_reported_once(
    code: int, reason: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With a server without resource.k8s.io/v1, or access to it, scheduling continues; plugins get the reason."""
    caplog.set_level(logging.WARNING, "kubestow.client")

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), pod("p"))
            async with running_scheduler(cluster, wrap=refuse("/apis/resource.k8s.io/", code, reason)) as instance:
                await eventually(cluster.all_bound)
                listers = instance.live.core.cluster.listers
                assert listers.claims.unreadable == ""
                assert listers.resource_claims.unreadable == f"resourceclaims.resource.k8s.io: the API server {message}"
                await asyncio.sleep(300.0)

    run(main())
    lines = [record.getMessage() for record in caplog.records if "resource.k8s.io" in record.getMessage()]
    kinds = ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices")
    [line] = lines
    assert f'resource="{", ".join(f"{kind}.resource.k8s.io" for kind in kinds)}"' in line
    missing = f"resources: [{', '.join(map(repr, kinds))}], verbs: ['list', 'watch']"
    assert (missing in line) == (code == 403)
    assert all(f"The API server {message}" in line and "continuing without" in line for line in lines)


def test_required_resources_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """Forbidden volumes may exist: nothing is scheduled, and the log contains the reason."""
    caplog.set_level(logging.ERROR, "kubestow.client")
    forbidden = "/api/v1/persistentvolumes"

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), pod("p"))
            async with running_scheduler(cluster, wrap=refuse(forbidden, 403, "Forbidden")) as instance:
                await asyncio.sleep(60.0)
                assert not await cluster.all_bound()
                # Pods are listed last.
                assert set(instance.live.informers.unsynced()) == {"persistentvolumes", "pods"}

    run(main())
    assert any("cannot continue until this is solved" in record.getMessage() for record in caplog.records)


def test_a_restarted_server_is_found_again(tmp_path: Path) -> None:
    """The API server is stopped and started again: all pods created before, meanwhile and after are bound."""

    async def main() -> None:
        options = Options(token=TOKEN, port=free_port(), data_dir=tmp_path, controllers=False, kubelets=False)
        plane = ControlPlane(options)
        await plane.start()
        cluster = Cluster(plane)
        await cluster.add(node("n1"), pod("before"))
        tls = TlsSettings(insecure=True)
        access = Access("test", plane.url, tls=tls, identity=Identity(token=TOKEN))
        live = LiveScheduler(LiveOptions(settings(), access, clock=SkewedClock()))
        running = asyncio.create_task(live.run())
        await eventually(cluster.all_bound)
        await plane.stop()
        again = ControlPlane(options)
        await again.start()
        await cluster.add(pod("after"))
        await eventually(lambda: cluster.all_bound("before", "after"))
        running.cancel()
        await asyncio.wait({running})
        cluster.close()
        await again.stop()

    asyncio.run(main())
