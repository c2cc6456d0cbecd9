"""/debug/decisions/podgroups: the decisions about pod groups."""

import asyncio
import json

import pytest

from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.pages import GROUPS, DecisionPages
from kubestow.server.pages import DECISIONS as PATH
from kubestow.testing import SchedulerHarness, make_node
from support.integration.cluster import eventually
from support.scenarios.gangs import add_gang, features
from support.server.decisions import ask, follow
from support.server.serving import Setting, served

PAGE = f"{PATH}/{GROUPS}"


@pytest.fixture(scope="module")
def archive() -> Archive:
    """Return the decisions about a group that is rejected and placed later, and one that is placed at once."""
    with SchedulerHarness(record_bytes=1 << 24, features=features()) as world:
        world.cluster.add(make_node("n1", cpu="2"))
        add_gang(world, "big", 3)
        world.run_for(0.5)
        add_gang(world, "small", 2, cpu="100m")
        world.run_for(0.5)
        world.cluster.add(make_node("n2", cpu="8"))
        world.run_until_idle()
        assert world.decisions is not None
        return world.decisions


@pytest.fixture
def setting(archive: Archive) -> Setting:
    return Setting(open_paths=("/*",), below={PATH: DecisionPages(archive).answer})


def test_groups_by_parameter(setting: Setting) -> None:
    """All groups, newest first, and those that match a parameter."""
    expected = {
        "": ["big", "small", "big"],
        "?outcome=unschedulable": ["big"],
        "?node=n2": ["big"],
        "?plugin=NodeResourcesFit": ["big"],
        "?podGroup=small&namespace=default": ["small"],
        "?namespace=other": [],
        "?before=3&limit=1": ["small"],
        "/default/big": ["big", "big"],
        "/default/big?outcome=scheduled": ["big"],
        "/default/big?outcome=error": [],
    }
    answers = ask(setting, *(f"{PAGE}{query}" for query in expected))
    for (status, body), names in zip(answers, expected.values(), strict=True):
        assert (status, body["version"]) == (200, 1)
        assert [item["podGroup"] for item in body["items"]] == [f"default/{name}" for name in names]


def test_unknown_groups(setting: Setting) -> None:
    """The 404 names the group; an invalid parameter is named."""
    unknown, wrong, pod = ask(setting, f"{PAGE}/default/none", f"{PAGE}?nodes=true", f"{PATH}/{GROUPS}/pod")
    assert (unknown[0], unknown[1]["message"]) == (
        404,
        "no decision about pod group default/none is recorded: it was not attempted, or too long ago",
    )
    known = "namespace, podGroup, node, outcome, plugin, since, until, before, limit, watch"
    assert (wrong[0], wrong[1]["message"]) == (400, f"nodes: unknown parameter; known are {known}")
    assert "about pod podgroups/pod" in pod[1]["message"]


def test_a_stream_of_groups(archive: Archive, setting: Setting) -> None:
    """As for pods; a stream of pods does not contain groups."""

    async def main() -> None:
        async with served(setting) as reader:
            groups, pods = await follow(reader, page=f"{PAGE}/default/small"), await follow(reader)
            for record in list(archive.recorder.groups)[::-1]:
                for listener in list(archive.recorder.groups.listeners):
                    listener(record)
            data = await groups.until(b"data: ")
            assert json.loads(data.removeprefix(b"data: "))["podGroup"] == "default/small"
            newest = next(iter(archive.recorder))
            for listen in list(archive.recorder.listeners):
                listen(newest)
            assert await pods.until(b"id: ") == b"id: %d\n" % newest.id
            for one in (groups, pods):
                one.writer.transport.abort()
            await eventually(lambda: not archive.recorder.groups.listeners and not archive.recorder.listeners, 300.0)

    asyncio.run(main())
