"""Every message that an in-tree plugin can give has a scenario: what the screen says, and that the suggestion works."""

import re
from collections.abc import Iterator

import click
import pytest
from msgspec.structs import replace

from kubestow.cli.explain.screen import lines_of
from kubestow.cli.terminal import printable
from kubestow.insight.decisions.schema import UNSCHEDULABLE, VERSION, Decision
from kubestow.insight.explain.causes import causes_of
from kubestow.insight.explain.changes import changed
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import Explanation, explained
from kubestow.insight.explain.would_fit import found_changes
from kubestow.scheduler.cluster.pods import PodInfo
from support.insight.device_rejections import DEVICE_SCENARIOS
from support.insight.messages import rejection_messages
from support.insight.other_rejections import OTHER_SCENARIOS
from support.insight.rejections import SCENARIOS, Scenario, run_of

MORE = DEVICE_SCENARIOS | OTHER_SCENARIOS
EVERY = SCENARIOS | MORE

AFTER_FILTER = (
    "binding/waiting.py",
    "cycle/pod_group.py",
    "default_preemption/",
    "dynamic_resources/conditions.py",
    "volume_binding/binding.py",
    r"volume_binding/plugin.py: node\ ",
    r"deallocation\ and\ deletion\ of\ ResourceClaims",
    r"deallocation\ of\ PodGroup\ ResourceClaim",
    r"unreserved\ for\ PodGroup",
    r"create\ NodeSelector\ for",
    r"claim\ allocation\ not\ found",
    r"waiting\ for\ minCount\ pods\ from\ a\ gang\ to\ be\ scheduled",
    r"minCount\ \(",
    r"pod\ resize\ fits",
)
"""Messages of PostFilter, Reserve, Permit and PreBind: the screen shows them as a running scheduler recorded them."""
OF_RESIZES = (r"pod\ assigned\ to\ different\ node", r"node\ had\ resize\ preemption\ disabled")
"""Messages about pods that have a node and wait there for a resize."""
REFUSED_BY_THE_API = (
    r"missing\ device\ class\ name",
    r"could\ not\ retrieve\ device\ class",
    r"unsupported\ count\ mode",
    r"checking\ capacity\ for\ device",
    r"derived\ attribute",
)
"""Messages about objects that the API server does not accept, or that an earlier check reports."""
OF_THE_MOMENT = (
    r"in\ the\ process\ of\ being\ allocated",
    r"timed\ out\ trying\ to\ allocate",
    r"which\ the\ scheduler\ cannot\ see",
    r"match\ the\ requested\ node\ name",
)
"""Messages that depend on other pods in the same moment, on permissions, or on a profile without PreFilter."""


def screen_of(scenario: Scenario) -> str:
    return click.unstyle(printable(lines_of(explained(run_of(scenario)))))


@pytest.mark.parametrize("scenario", MORE.values(), ids=MORE)
def test_the_cause_is_named(scenario: Scenario) -> None:
    assert [one.text for one in causes_of(run_of(scenario))][:1] == ([scenario.text] if scenario.text else [])


@pytest.mark.parametrize("scenario", MORE.values(), ids=MORE)
def test_the_first_suggestion_works(scenario: Scenario) -> None:
    run = run_of(scenario)
    found = found_changes(run, causes_of(run))
    assert [one.change.text for one in found[:1]] == ([scenario.change] if scenario.change else [])
    for first in (one.change for one in found[:1]):
        with changed(run.world, first):
            assert DryRun(run.world, PodInfo(scenario.pod if first.pod is None else first.pod)).chosen
        assert not DryRun(run.world, run.pod).chosen


@pytest.mark.parametrize("scenario", EVERY.values(), ids=EVERY)
def test_the_screen_fits_a_terminal_and_names_something(scenario: Scenario) -> None:
    """It has at most 24 lines of 80 columns; without a change that helps, it ends with what stands in the way."""
    lines = screen_of(scenario).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    first = (scenario.text or scenario.change).split()[0]
    assert any(first in line for line in lines)


def messages_of(scenario: Scenario) -> Iterator[str]:
    decision = run_of(scenario).decision()
    yield decision.message
    results = decision.nodes if isinstance(decision.nodes, dict) else {}
    rejections = [decision.preFilter.rejected, *(one.rejected for one in results.values())]
    yield from (reason for one in rejections if one is not None for reason in one.reasons)


def test_every_message_of_a_plugin_has_a_scenario() -> None:
    """A new message needs one; those that no dry run can give are listed above."""
    given = {message for scenario in EVERY.values() for message in messages_of(scenario)}
    other = (*AFTER_FILTER, *OF_RESIZES, *REFUSED_BY_THE_API, *OF_THE_MOMENT)
    missing = {
        place for place, message in rejection_messages().items() if not any(message.search(text) for text in given)
    }
    assert {place for place in missing if not any(part in place for part in other)} == set()
    assert [part for part in other if not any(part in place for place in missing)] == []


def test_what_no_change_removes_is_named_first() -> None:
    """The misspelt label can be corrected, but there are no devices; other filters hide that."""
    scenario = DEVICE_SCENARIOS["no devices at all"]
    spec = replace(scenario.pod.spec, nodeSelector={"kubernetes.io/hostname": "aa"})
    text = " ".join(screen_of(scenario._replace(pod=replace(scenario.pod, spec=spec))).split())
    assert f"no two changes at once. In the way: {scenario.text}." in text


RECORDED = [place for place in rejection_messages() if any(part in place for part in (*AFTER_FILTER, *OF_THE_MOMENT))]


@pytest.mark.parametrize("place", RECORDED)
def test_messages_of_a_running_scheduler_are_shown(place: str) -> None:
    """The plugin and the node are named, too."""
    message = re.sub(r"\\(.)", r"\1", place.partition(": ")[2]).replace(".*", "NAME")
    decision = Decision(
        version=VERSION,
        pod="default/x",
        outcome=UNSCHEDULABLE,
        chosen="n0",
        message=message,
        nodes={},
        rejectedBy=("Plugin",),
        nodeCount=3,
        evaluated=3,
        feasible=2,
    )
    text = " ".join(click.unstyle(printable(lines_of(Explanation(decision, "scheduler")))).split())
    assert "it was refused by Plugin on its way to n0" in text
    assert " ".join(message.split()) in text
