"""Large clusters, and names that look like markup."""

import json
from typing import Any

import pytest

from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.page_harness import API, PageHarness, Reader, ask, served

HOSTILE = ("<script>alert(1)</script>", "x" * 253, "\u202egnp.exe", "a/b", '"quoted"', "new\nline", "💥")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data(name: str) -> None:
    """Names of nodes, pods, labels and taints are returned unchanged, as JSON only."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        world.cluster.add(make_node(name, cpu="2", labels={name: name}))
        world.cluster.add(make_pod(name, namespace="default", cpu="1"))
        world.cluster.add(make_pod(f"{name}2", cpu="8", node_selector={name: name}))
        world.run_for(5.0)
        page.make_moment()
        quoted = "".join(f"%{byte:02x}" for byte in name.encode())

        async def read(reader: Reader) -> list[Any]:
            paths = ("/cluster", "/queue", f"/search?q={quoted}", f"/nodes/{quoted}", f"/decisions/default/{quoted}")
            return [await reader.get(API + path) for path in paths]

        answers = served(page.site(), read)
    assert {answer.headers["Content-Type"] for answer in answers} == {"application/json"}
    assert {answer.headers["X-Content-Type-Options"] for answer in answers} == {"nosniff"}
    cluster, queue, search, *more = answers
    assert cluster.tree["names"] == [name]
    assert cluster.tree["labels"][name] == {"values": ["", name], "of": [1]}
    assert queue.tree["rows"][0][1] == f"default/{name}2"
    assert search.tree["nodes"] == [name]
    if "/" in name:
        assert {answer.status for answer in more} == {404}
    else:
        node, decision = more
        assert node.tree["pods"]["rows"][0][1] == f"default/{name}"
        assert decision.tree["decision"]["chosen"] == name


def test_5000_nodes_and_10000_pending_pods() -> None:
    """The response has all of them, in a size that a browser can handle; an event only has the changes."""
    with SchedulerHarness(record_bytes=1 << 26) as world:
        page = PageHarness(world)
        for number in range(5_000):
            labels = {"kubernetes.io/hostname": f"node-{number}", "zone": f"zone-{number % 3}"}
            world.cluster.add(make_node(f"node-{number}", cpu="4", labels=labels))
        for number in range(10_000):
            world.cluster.add(make_pod(f"pod-{number}", cpu="64"))
        world.run_for(30.0)
        page.make_moment()
        cluster, queue = ask(page.site(), "/cluster", "/queue")
        assert len(cluster["names"]) == len(cluster["fragmentation"]) == 5_000
        assert cluster["labelsLeftOut"] == ["kubernetes.io/hostname"]
        assert len(json.dumps(cluster)) < 500_000
        assert (len(queue["rows"]), len(queue["reasons"])) == (10_000, 2)
        assert len(json.dumps(queue)) < 3_000_000
        world.cluster.add(make_pod("small", cpu="1"))
        world.run_for(1.0)
        moment = page.make_moment()
        assert moment is not None
        assert (moment.layout, moment.left) == (cluster["layout"], [])
        assert len(moment.waiting) < 100
