"""/debug/decisions: access, parameters, and the stream."""

import asyncio
import json
from typing import Any

import pytest

from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.pages import MAX_FOLLOWERS, DecisionPages
from kubestow.server.pages import DECISIONS as PATH
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.integration.cluster import eventually
from support.server.decisions import ask, follow
from support.server.serving import Reviews, Setting, served


@pytest.fixture(scope="module")
def archive() -> Archive:
    """Return the decisions about three pods, one of which was tried twice."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1", cpu="2"))
        world.cluster.add(make_pod("fits", cpu="1"))
        world.cluster.add(make_pod("elsewhere", namespace="other", cpu="500m"))
        world.cluster.add(make_pod("big", cpu="4"))
        world.run_until_idle()
        world.run_for(100.0)
        world.cluster.add(make_node("n2", cpu="8"))
        world.run_until_idle()
        assert world.decisions is not None
        return world.decisions


@pytest.fixture
def setting(archive: Archive) -> Setting:
    return Setting(open_paths=("/*",), below={PATH: DecisionPages(archive).answer})


def pods(answer: tuple[int, Any]) -> list[str]:
    status, body = answer
    assert (status, body["version"]) == (200, 1)
    return [item["pod"] for item in body["items"]]


def test_all_decisions_newest_first(setting: Setting) -> None:
    """Details of nodes are included only on request."""
    plain, with_nodes = ask(setting, PATH, f"{PATH}?nodes=true&limit=1")
    assert pods(plain) == ["default/big", "default/big", "other/elsewhere", "default/fits"]
    assert not any("nodes" in item for item in plain[1]["items"])
    (item,) = with_nodes[1]["items"]
    assert set(item["nodes"]) == {"n1", "n2"}


FILTERS = {
    "namespace=other": ["other/elsewhere"],
    "pod=fits": ["default/fits"],
    "node=n2": ["default/big"],
    "refusedNode=n1": ["default/big", "default/big"],
    "refusedNode=n1&outcome=scheduled&plugin=NodeResourcesFit": ["default/big"],
    "refusedNode=n1&plugin=NodeName": [],
    "refusedNode=n2": [],
    "outcome=unschedulable": ["default/big"],
    "outcome=error": [],
    "plugin=NodeResourcesFit": ["default/big"],
    "since=2026-01-01T00:01:00Z": ["default/big"],
    "until=2026-01-01T00:01:00Z&namespace=default": ["default/big", "default/fits"],
    "limit=2": ["default/big", "default/big"],
    "before=3&limit=1": ["other/elsewhere"],
}


def test_filters(setting: Setting) -> None:
    """Each parameter alone, and combined."""
    answers = ask(setting, *(f"{PATH}?{query}" for query in FILTERS))
    assert dict(zip(FILTERS, map(pods, answers), strict=True)) == FILTERS


def test_one_pod(setting: Setting) -> None:
    """The page has all decisions about the pod, with nodes; an unknown pod is not found."""
    found, unknown, incomplete = ask(setting, f"{PATH}/default/big", f"{PATH}/default/unknown", f"{PATH}/default")
    assert pods(found) == ["default/big", "default/big"]
    newest, oldest = found[1]["items"]
    assert (newest["chosen"], oldest["chosen"]) == ("n2", None)
    assert oldest["nodes"]["n1"]["rejected"] == {
        "plugin": "NodeResourcesFit",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["Insufficient cpu"],
    }
    assert unknown[0] == incomplete[0] == 404
    assert "no decision about pod default/unknown is recorded" in unknown[1]["message"]
    assert f"{PATH}/NAMESPACE/POD" in incomplete[1]["message"]


def test_one_pod_without_matching_decisions(setting: Setting) -> None:
    """The pod is known, so the list is empty."""
    queries = ("node=zz", "outcome=error", "before=1", "until=2020-01-01T00:00:00Z")
    assert [pods(answer) for answer in ask(setting, *(f"{PATH}/default/fits?{query}" for query in queries))] == [[]] * 4


WRONG = {
    "outcome=bound": "outcome: must be one of scheduled, unschedulable, error, not 'bound'",
    "since=yesterday": "since: 'yesterday' is not a time such as 2026-01-31T12:00:00Z",
    "limit=0": "limit: must be a whole number above 0, not '0'",
    "nodes=yes": "nodes: must be true or false, not 'yes'",
    "watch=1": "watch: must be true or false, not '1'",
    "pod=default/big": "pod: must be a name or a uid, not 'default/big'; namespace is a separate parameter",
    "podd=a": "podd: unknown parameter; known are namespace, pod, node, refusedNode, outcome, plugin, since, until, "
    "before, limit, nodes, watch",
}


def test_invalid_parameters_are_rejected(setting: Setting) -> None:
    """The error names the parameter."""
    answers = ask(setting, *(f"{PATH}?{query}" for query in WRONG))
    assert [status for status, _ in answers] == [400] * len(WRONG)
    for (_, body), words in zip(answers, WRONG.values(), strict=True):
        assert words in body["message"]


def test_disabled_records() -> None:
    """The response is 404 and names the flag that enables them."""
    off = Setting(open_paths=("/*",))
    for status, body in ask(off, PATH, f"{PATH}/default/big", f"{PATH}/podgroups/default/train"):
        assert (status, body["reason"]) == (404, "NotFound")
        assert body["message"].startswith("decision records are disabled; --decision-records-bytes ")


def test_access(archive: Archive) -> None:
    """The API server decides for each path, as for all other pages."""
    reviews = Reviews({"good": "reader"}, {("reader", "get", PATH)})
    setting = Setting(reviews, below={PATH: DecisionPages(archive).answer})

    async def main() -> list[int]:
        async with served(setting) as reader:
            return [
                (await reader.get(PATH)).status,
                (await reader.get(PATH, token="good")).status,
                (await reader.get(f"{PATH}/default/big", token="good")).status,
            ]

    assert asyncio.run(main()) == [403, 200, 403]


def deliver_again(archive: Archive) -> None:
    """Deliver all decisions again as if they were new."""
    for record in list(archive.recorder)[::-1]:
        for listener in list(archive.recorder.listeners):
            listener(record)


def test_a_stream_of_decisions(archive: Archive, setting: Setting) -> None:
    """Server-sent events of the decisions that match the query; a client that disconnects is removed."""

    async def main() -> None:
        async with served(setting) as reader:
            following = await follow(reader, "&pod=big")
            deliver_again(archive)
            assert await following.until(b"id: ") == b"id: 3\n"
            data = await following.until(b"data: ")
            assert json.loads(data.removeprefix(b"data: "))["outcome"] == "unschedulable"
            assert await following.until(b"id: ") == b"id: 4\n"
            following.writer.transport.abort()
            await eventually(lambda: not archive.recorder.listeners, 300.0)

    asyncio.run(main())


def test_a_slow_client_is_disconnected(archive: Archive, setting: Setting) -> None:
    """Unsent data does not accumulate, and other clients are not affected."""

    async def main() -> None:
        async with served(setting) as reader:
            slow = await follow(reader)
            slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(20_000):
                deliver_again(archive)
                await asyncio.sleep(0)
                if not archive.recorder.listeners:
                    break
            assert not archive.recorder.listeners
            slow.writer.transport.abort()

    asyncio.run(main())


def test_followers_are_limited(setting: Setting) -> None:
    """A client beyond the limit gets an error."""

    async def main() -> int:
        async with served(setting) as reader:
            followers = [await follow(reader) for _ in range(MAX_FOLLOWERS)]
            status = (await reader.get(f"{PATH}?watch=true")).status
            for follower in followers:
                follower.writer.transport.abort()
            return status

    assert asyncio.run(main()) == 429
