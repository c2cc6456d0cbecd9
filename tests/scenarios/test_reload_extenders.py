"""Changes of extenders at runtime: new pods use the new ones, pods being bound end with the previous ones."""

from functools import partial
from pathlib import Path

from kubestow.testing import make_node, make_pod
from support.scenarios.extending import FakeExtenders, binds_in, only
from support.scenarios.reloads import MINE, Reloadable, plugin
from support.scenarios.start import Start

ANY_NODE = plugin(version="")


def listed(**extenders: str) -> str:
    entries = ", ".join(f"{{urlPrefix: 'http://x/{name}', {fields}}}" for name, fields in extenders.items())
    return f"extenders: [{entries}]\n{MINE}"


def begin(tmp_path: Path, start: Start, extenders: FakeExtenders, **configured: str) -> Reloadable:
    reloadable = Reloadable(tmp_path, partial(start, ask=extenders.ask), listed(**configured), ANY_NODE)
    for name in ("n1", "n2"):
        reloadable.harness.cluster.add(make_node(name))
    return reloadable


FILTER = "filterVerb: filter, nodeCacheCapable: true"


def test_rejected_pods_are_retried_with_the_new_extender(tmp_path: Path, start: Start) -> None:
    """The removed extender is not called any more."""
    extenders = FakeExtenders()
    extenders.replies = {"a/filter": only(), "b/filter": only("n2")}
    reloadable = begin(tmp_path, start, extenders, a=FILTER)
    harness = reloadable.harness
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.place_of("p") == "unschedulable"
    before = reloadable.mine()
    assert reloadable.reload(configuration=listed(b=FILTER))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"
    assert extenders.paths[-1] == "b/filter"
    assert reloadable.mine() is before
    assert reloadable.events[-1].note == "reloaded its configuration; changed: extenders"


def test_the_last_extender_is_removed(tmp_path: Path, start: Start) -> None:
    """No extender is called then."""
    extenders = FakeExtenders()
    reloadable = begin(tmp_path, start, extenders, a=f"{FILTER}, bindVerb: bind")
    assert reloadable.reload(configuration=MINE)
    reloadable.harness.cluster.add(make_pod("p"))
    reloadable.harness.run_until_idle()
    assert reloadable.harness.cluster.node_of("p")
    assert extenders.calls == []


def test_pods_are_bound_by_the_extender_that_they_began_with(tmp_path: Path, start: Start) -> None:
    """The previous one binds the pod that waits in PreBind; the next pod is bound by the new one."""
    extenders = FakeExtenders()
    methods = [
        "def pre_bind_needed(self, state, pod, node): return True",
        "async def pre_bind(self, state, pod, node): await __import__('asyncio').sleep(5)",
    ]
    slow = plugin("\n".join(methods), version="")
    reloadable = begin(tmp_path, start, extenders, a="bindVerb: bind")
    harness = reloadable.harness
    extenders.replies = dict.fromkeys(("a/bind", "b/bind"), binds_in(harness.cluster))
    assert reloadable.reload(code=slow)
    harness.cluster.add(make_pod("p"))
    harness.run_for(1.0)
    assert reloadable.reload(configuration=listed(b="bindVerb: bind"))
    harness.cluster.add(make_pod("q"))
    harness.run_until_idle()
    assert [(call.path, call.body["PodName"]) for call in extenders.calls] == [("a/bind", "p"), ("b/bind", "q")]


def test_an_extender_that_needs_whole_objects_requires_a_restart(tmp_path: Path, start: Start) -> None:
    """Nodes that are sent whole would have to be kept; the previous extender stays in use."""
    extenders = FakeExtenders()
    reloadable = begin(tmp_path, start, extenders, a=FILTER)
    assert not reloadable.reload(configuration=listed(a="filterVerb: filter"))
    assert "need complete Nodes, which are not stored: restart" in reloadable.events[-1].note
    reloadable.harness.cluster.add(make_pod("p"))
    reloadable.harness.run_until_idle()
    assert extenders.paths == ["a/filter"]
