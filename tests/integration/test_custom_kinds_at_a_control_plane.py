"""Plugins watch custom resources at a control plane; their definitions come and go while the scheduler runs."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request
from support.apiserver.running import Running
from support.client.virtualtime import run
from support.integration.cluster import (
    PODS,
    Application,
    Cluster,
    eventually,
    node,
    pod,
    running_cluster,
    running_scheduler,
)
from support.integration.custom_definitions import DEFINITIONS, QUOTA, QUOTAS, definition
from support.integration.misbehaviour import fail
from support.integration.process import Process
from support.plugins.platform_plugins import LateReporter, QuotaGuard
from support.polling import until


async def message(cluster: Cluster, name: str) -> str:
    conditions = (await cluster.pods())[name].get("status", {}).get("conditions", [])
    return str(conditions[0].get("message", "")) if conditions else ""


def test_definition_is_installed_and_removed_while_running() -> None:
    """Pods wait for the definition; its objects count; without it, pods wait again."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), pod("p1", "1"))
            async with running_scheduler(cluster, plugins=[QuotaGuard]):

                async def waits(name: str) -> bool:
                    return "waiting for elasticquotas.scheduling.x-k8s.io" in await message(cluster, name)

                await eventually(lambda: waits("p1"))
                await cluster.call("POST", DEFINITIONS, definition("scheduling.x-k8s.io", "ElasticQuota"))
                await eventually(lambda: cluster.all_bound("p1"))
                await cluster.call("POST", QUOTAS, QUOTA | {"spec": {"max": {"cpu": "1"}}})
                await cluster.add(pod("p2", "1"))

                async def exceeds() -> bool:
                    return "max of ElasticQuota quota exceeded" in await message(cluster, "p2")

                await eventually(exceeds)
                await cluster.call("DELETE", f"{DEFINITIONS}/elasticquotas.scheduling.x-k8s.io")
                # The objects are deleted first, and their definition after them.
                await asyncio.sleep(10)
                await cluster.add(pod("p3", "1"))
                await eventually(lambda: waits("p3"))
                assert (await cluster.nodes_of_pods())["p3"] == ""

    run(main())


def test_versions_and_broken_objects_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    """A version that is not served any more is named; broken objects are left out, with one message for all."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"))
            installed = definition("scheduling.x-k8s.io", "ElasticQuota")
            await cluster.call("POST", DEFINITIONS, installed)
            await asyncio.sleep(1)
            for number in range(10):
                broken = {"metadata": {"name": f"broken-{number}", "namespace": "default"}, "spec": {"max": "all"}}
                await cluster.call("POST", QUOTAS, QUOTA | broken)
            await cluster.call("POST", QUOTAS, QUOTA | {"spec": {"max": {"cpu": "1"}}})
            async with running_scheduler(cluster, plugins=[QuotaGuard]):
                await cluster.add(pod("p1", "1"), pod("p2", "1"))
                await eventually(lambda: cluster.all_bound("p1"))
                assert not await cluster.all_bound("p2")
                await cluster.patch(f"{QUOTAS}/broken-0", {"spec": {"max": {"cpu": "0"}}})
                await cluster.patch(f"{QUOTAS}/quota", {"spec": {"max": {"cpu": "2"}}})

                async def message_is(name: str, words: str) -> bool:
                    return words in await message(cluster, name)

                await eventually(lambda: message_is("p2", "max of ElasticQuota broken-0 exceeded"))
                newer = installed["spec"]["versions"][0] | {"name": "v1"}
                older = installed["spec"]["versions"][0] | {"served": False, "storage": False}
                crd = f"{DEFINITIONS}/elasticquotas.scheduling.x-k8s.io"
                await cluster.patch(crd, {"spec": {"versions": [newer, older]}})
                # Watches continue until their time limit.
                await asyncio.sleep(700)
                await cluster.add(pod("p3", "1"))
                await eventually(lambda: message_is("p3", "has them as v1 only, not v1alpha1"))
                await cluster.patch(crd, {"spec": {"versions": [newer, older | {"served": True}]}})
                await cluster.delete(f"{QUOTAS}/broken-0")
                await eventually(lambda: cluster.all_bound("p2"))

    run(main())
    logged = [record.getMessage() for record in caplog.records]
    assert len([line for line in logged if "cannot be decoded" in line]) == 1
    assert len([line for line in logged if "has them as v1 only" in line]) == 1


def test_writes_survive_a_server_that_goes_away() -> None:
    """What a plugin writes while the API server fails or is unreachable arrives when it is back."""
    writes_fail = [True]

    def failing(application: Application) -> Application:
        def answer(request: Request, connection: Connection) -> None:
            fails = bool(writes_fail) and request.method == "PATCH" and "/elasticquotas/" in request.path
            fail(application, request, connection) if fails else application(request, connection)

        return answer

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"))
            await cluster.call("POST", DEFINITIONS, definition("scheduling.x-k8s.io", "ElasticQuota", status=True))
            await asyncio.sleep(1)
            await cluster.call("POST", QUOTAS, QUOTA)
            async with running_scheduler(cluster, plugins=[LateReporter], wrap=failing) as instance:

                async def is_written() -> bool:
                    quota = await cluster.get(f"{QUOTAS}/quota")
                    used = quota.get("status", {}).get("used", {}).get("cpu")
                    return used == "2" and "last" in quota["metadata"].get("annotations", {})

                await cluster.add(pod("p1", "1"), pod("p2", "1"))
                await eventually(lambda: cluster.all_bound("p1", "p2"))
                await asyncio.sleep(3)
                await instance.link.disconnect()
                await asyncio.sleep(20)
                assert not await is_written()
                writes_fail.clear()
                await instance.link.connect()
                await eventually(is_written)

    run(main())


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %s}
profiles:
- plugins: {multiPoint: {enabled: [{name: Allows}]}}
"""
PLUGIN = """
from kubestow.plugin import unstructured

Kind = unstructured("example.com/v1", "%(plural)s", "%(kind)s")

class Allows:
    name = "Allows"
    watches = (Kind,)

    def __init__(self, args, handle):
        self.allowed = handle.objects(Kind)

    def filter(self, state, pod, node):
        return None if self.allowed.get(node.name, "default") else "no %(kind)s"
"""


def _is_established(obj: Any) -> bool:
    conditions = obj.get("status", {}).get("conditions", ())
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def test_reloaded_plugin_watches_another_kind(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """The objects of the new kind are listed before the plugin is used, so that no pod is misplaced."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    for kind in ("Alpha", "Beta"):
        client.create(DEFINITIONS, definition("example.com", kind, "v1"))
    betas = "/apis/example.com/v1/namespaces/default/betas"
    plane.until(f"{DEFINITIONS}/betas.example.com", _is_established)
    client.create(betas, {"apiVersion": "example.com/v1", "kind": "Beta", "metadata": {"name": "n1"}})
    configuration, plugin = tmp_path / "scheduler.yaml", tmp_path / "allows.py"
    configuration.write_text(CONFIGURATION % plane.control_plane.kubeconfig_path)
    plugin.write_text(PLUGIN % {"plural": "alphas", "kind": "Alpha"})
    scheduler = start(f"--config={configuration}", f"--plugin={plugin}", "-v=2")
    client.create(PODS, pod("p"))
    until(lambda: "no Alpha" in scheduler.output(), scheduler.output)
    plugin.write_text(PLUGIN % {"plural": "betas", "kind": "Beta"})
    scheduler.send(signal.SIGHUP)
    until(lambda: client.get(f"{PODS}/p")["spec"].get("nodeName") == "n1", scheduler.output)
    assert "no Beta" not in scheduler.output()
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0
