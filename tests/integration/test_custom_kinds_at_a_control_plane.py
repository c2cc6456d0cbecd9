"""Plugins watch custom resources at a control plane; their definitions come and go while the scheduler runs."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.apiserver.running import Running
from support.client.virtualtime import run
from support.integration.cluster import PODS, Cluster, eventually, node, pod, running_cluster, running_scheduler
from support.integration.custom_definitions import DEFINITIONS, QUOTA, QUOTAS, definition
from support.integration.process import Process
from support.plugins.platform_plugins import QuotaGuard
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
