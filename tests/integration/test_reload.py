"""Files change while a scheduler runs: `kubestow scheduler` reloads on SIGHUP, `kubestow up` by itself."""

import signal
from collections.abc import Callable
from pathlib import Path

from support.apiserver.running import Running
from support.cli.up_running import Up
from support.integration.cluster import PODS, node, pod
from support.integration.process import Process
from support.polling import until

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %s}
profiles:
- plugins: {multiPoint: {enabled: [{name: Here}]}}
"""
PLUGIN = """
class Here:
    name = "Here"

    def __init__(self, args, handle): ...

    def filter(self, state, pod, node):
        return None if node.name == "%s" else "not here"
"""


def test_sighup(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """A broken plugin is rejected, with an event; the next one places the pod that was rejected before."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    configuration, plugin = tmp_path / "scheduler.yaml", tmp_path / "here.py"
    configuration.write_text(CONFIGURATION % plane.control_plane.kubeconfig_path)
    plugin.write_text(PLUGIN % "n9")
    scheduler = start(f"--config={configuration}", f"--plugin={plugin}", "-v=2")
    client.create(PODS, pod("p"))
    until(lambda: "not here" in scheduler.output(), scheduler.output)
    plugin.write_text("class Here(")
    scheduler.send(signal.SIGHUP)
    until(lambda: "Configuration not reloaded" in scheduler.output(), scheduler.output)
    assert "here.py: line 1: " in scheduler.output()
    plugin.write_text(PLUGIN % "n1")
    scheduler.send(signal.SIGHUP)
    until(lambda: client.get(f"{PODS}/p")["spec"].get("nodeName") == "n1", scheduler.output)

    def reasons() -> set[str]:
        return {event["reason"] for event in client.get("/api/v1/namespaces/kube-system/events")["items"]}

    until(lambda: reasons() >= {"ReloadFailed", "Reloaded"}, scheduler.output)
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0


def test_sighup_while_it_starts(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """The signal is not lost, and does not end the process."""
    configuration, plugin, loaded = tmp_path / "scheduler.yaml", tmp_path / "here.py", tmp_path / "loaded"
    configuration.write_text(CONFIGURATION % plane.control_plane.kubeconfig_path)
    once = f"import os\nif not os.path.exists({str(loaded)!r}):\n    os.kill(os.getpid(), {signal.SIGHUP:d})\n"
    plugin.write_text(f"{once}open({str(loaded)!r}, 'w').close()\n" + PLUGIN % "n1")
    scheduler = start(f"--config={configuration}", f"--plugin={plugin}", "-v=2")
    until(lambda: "Configuration reloaded" in scheduler.output(), scheduler.output)
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0


def test_a_file_that_changes_while_it_starts(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """The scheduler has read it, and does not watch it yet; the change is still applied."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    configuration, plugin, next_one = tmp_path / "scheduler.yaml", tmp_path / "here.py", tmp_path / "next"
    configuration.write_text(CONFIGURATION % plane.control_plane.kubeconfig_path)
    next_one.write_text(PLUGIN % "n1")
    plugin.write_text(f"import os\nos.replace({str(next_one)!r}, {str(plugin)!r})\n" + PLUGIN % "n9")
    client.create(PODS, pod("p"))
    scheduler = start(f"--config={configuration}", f"--plugin={plugin}", "-v=2")
    until(lambda: client.get(f"{PODS}/p")["spec"].get("nodeName") == "n1", scheduler.output)
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0


def test_sighup_without_reload(start: Callable[..., Process], plane: Running) -> None:
    """With --reload=off it has no effect: the scheduler continues until it is stopped."""
    scheduler = start(f"--kubeconfig={plane.control_plane.kubeconfig_path}", "--reload=off", "-v=2")
    until(lambda: "Successfully acquired lease" in scheduler.output(), scheduler.output)
    scheduler.send(signal.SIGHUP)
    until(lambda: "Configuration not reloaded, because of --reload=off" in scheduler.output(), scheduler.output)
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0


def test_up_watches_its_files(tmp_path: Path) -> None:
    """A plugin is edited, and the pod that it rejected runs."""
    configuration, plugin = tmp_path / "scheduler.yaml", tmp_path / "here.py"
    configuration.write_text(CONFIGURATION % '""')
    plugin.write_text(PLUGIN % "nowhere")
    up = Up(tmp_path, "--nodes=1", f"--config={configuration}", f"--plugin={plugin}")
    try:
        name = up.get("/api/v1/nodes")["items"][0]["metadata"]["name"]
        up.create_pod("p")
        until(lambda: up.get("/api/v1/namespaces/default/pods/p")["status"].get("conditions"))
        plugin.write_text(PLUGIN % name)
        assert up.pods_when("Running", 1)["p"]["spec"]["nodeName"] == name
    finally:
        up.stop()
