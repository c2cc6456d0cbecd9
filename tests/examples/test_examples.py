"""Every example does what its docstring describes."""

import asyncio
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow.plugin.loading import load
from kubestow.testing import SchedulerHarness, check_forms, make_node, make_pod
from support.repository import ROOT

EXAMPLES = ROOT / "examples"
NUMBERED = sorted(EXAMPLES.glob("[0-9]*.py"))
HOUR = 3600


def plugin_of(number: str) -> Any:
    """Return the plugin class of the example with this number."""
    (file,) = EXAMPLES.glob(f"{number}_*.py")
    (loaded,) = load(str(file))
    return loaded.plugin


def configured(name: str, args: str = "{}") -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{{name: {name}, weight: 100}}]
  pluginConfig: [{{name: {name}, args: {args}}}]
"""


def start(number: str, args: str = "{}") -> SchedulerHarness:
    plugin = plugin_of(number)
    return SchedulerHarness(configured(plugin.name, args), plugins=[plugin])


def message(harness: SchedulerHarness, pod: str) -> str:
    return harness.cluster.conditions(pod)["PodScheduled"].message


@pytest.mark.parametrize("file", NUMBERED, ids=lambda file: file.stem)
def test_each_example_is_short_and_listed(file: Path) -> None:
    """One plugin, at most 60 lines, named in the list of examples."""
    (loaded,) = load(str(file))
    assert loaded.plugin.__module__
    assert len(file.read_text().splitlines()) <= 60
    assert f"({file.name})" in (EXAMPLES / "README.md").read_text()


def test_the_first_example_is_in_the_readme() -> None:
    """It is short, and the README quotes it."""
    text = NUMBERED[0].read_text()
    assert len(text.splitlines()) <= 15
    assert text.split("\n\n\n")[1].strip() in (EXAMPLES.parent / "README.md").read_text()


def test_prefer_a_zone() -> None:
    """The zone wins even if a node elsewhere is emptier."""
    with start("01", "{zone: b}") as harness:
        harness.cluster.add(make_node("n0", zone="a", cpu="64"))
        harness.cluster.add(make_node("n1", zone="b", cpu="4"))
        for number in range(3):
            harness.cluster.add(make_pod(f"p{number}", cpu="1"))
        harness.run_until_idle()
        assert set(harness.bindings.values()) == {"n1"}


def test_count_licences() -> None:
    """Two pods get a licence; the third waits until one of them is deleted."""
    with start("02", "{licences: {matlab: 2}}") as harness:
        for number in range(3):
            harness.cluster.add(make_node(f"n{number}"))
            harness.cluster.add(make_pod(f"p{number}", labels={"licence": "matlab"}))
        harness.cluster.add(make_pod("free"))
        harness.run_until_idle()
        assert set(harness.bindings) == {"default/p0", "default/p1", "default/free"}
        assert "all 2 licences of matlab are in use" in message(harness, "p2")
        harness.cluster.delete(harness.cluster.pod("free"))
        harness.run_for(30)
        assert "default/p2" not in harness.bindings
        harness.cluster.delete(harness.cluster.pod("p0"))
        harness.run_until_idle()
        assert "default/p2" in harness.bindings


def test_start_together() -> None:
    """Two of three pods wait, holding their nodes; the third releases all of them."""
    labels = {"group": "g", "group-size": "3"}
    with start("03") as harness:
        harness.cluster.add(make_node("n0"))
        for number in range(2):
            harness.cluster.add(make_pod(f"p{number}", labels=labels))
        harness.cluster.add(make_pod("alone"))
        harness.run_for(10)
        assert set(harness.bindings) == {"default/alone"}
        assert harness.place_of("p0") == harness.place_of("p1") == "waiting"
        harness.cluster.add(make_pod("p2", labels=labels))
        harness.run_until_idle()
        assert len(harness.bindings) == 4


def test_an_incomplete_group_releases_its_nodes() -> None:
    """After a minute all of its pods are in the queue again."""
    with start("03") as harness:
        harness.cluster.add(make_node("n0"))
        for number in range(2):
            harness.cluster.add(make_pod(f"p{number}", labels={"group": "g", "group-size": "3"}))
        harness.run_for(60.5)
        assert not harness.bindings
        notes = harness.events.notes("FailedScheduling")
        assert len(notes) == 2
        assert all("rejected due to timeout after waiting 1m0s at plugin StartTogether" in note for note in notes)


def test_cheapest_node() -> None:
    """The cheapest of three nodes is chosen; a node without a price is the most expensive one."""
    with start("04") as harness:
        for name, labels in (("n0", {}), ("n1", {"cost": "0.7"}), ("n2", {"cost": "0.35"})):
            harness.cluster.add(make_node(name, labels=labels))
        harness.cluster.add(make_pod("p", cpu="100m"))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n2"}


def test_office_hours() -> None:
    """Virtual time begins at midnight: the pod starts at nine."""
    with start("05") as harness:
        harness.cluster.add(make_node("n0"))
        harness.cluster.add(make_pod("p", labels={"when": "office-hours"}))
        harness.cluster.add(make_pod("any-time"))
        harness.run_for(8.9 * HOUR)
        assert set(harness.bindings) == {"default/any-time"}
        assert harness.place_of("p") == "gated"
        harness.run_for(0.2 * HOUR)
        assert "default/p" in harness.bindings


def test_spare_memory() -> None:
    """A tenth of the node stays free; both forms agree."""
    with start("06") as harness:
        harness.cluster.add(make_node("n0", memory="10Gi"))
        harness.cluster.add(make_pod("large", memory="9Gi"))
        harness.run_until_idle()
        harness.cluster.add(make_pod("small", memory="1Mi"))
        harness.run_until_idle()
        assert set(harness.bindings) == {"default/large"}
        assert "1 node would have too little spare memory" in message(harness, "small")
    plugin = plugin_of("06")
    assert check_forms(plugin, plugin.__init__.__annotations__["args"]()) > 500


class _Service(http.server.BaseHTTPRequestHandler):
    """Accepts pods whose name begins with `good`."""

    def do_GET(self) -> None:
        self.send_response(200 if "pod=good" in self.path and "node=n0" in self.path else 403)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    """Return the address of a local service."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_ask_a_service(service: str) -> None:
    """A pod that the service rejects is retried later."""
    plugin = plugin_of("07")

    async def until_both_are_decided() -> SchedulerHarness:
        configuration = configured(plugin.name, f'{{url: "{service}", timeout: 300}}')
        async with SchedulerHarness(configuration, plugins=[plugin], loop=asyncio.get_running_loop()) as harness:
            harness.cluster.add(make_node("n0"))
            for name in ("good", "bad"):
                harness.cluster.add(make_pod(name, labels={"ask-service": "yes"}))
            while not (harness.bindings and harness.events.notes("FailedScheduling")):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return harness

    harness = asyncio.run(asyncio.wait_for(until_both_are_decided(), 300))
    assert harness.bindings == {"default/good": "n0"}
    (note,) = set(harness.events.notes("FailedScheduling"))
    assert note == f"the service at {service} rejects the pod: Forbidden"
