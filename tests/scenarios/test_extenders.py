"""Filter, prioritize and bind by extenders: placements, messages and logs."""

import logging
from typing import Any

import pytest

from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.extenders.extender import ExtenderError
from kubestow.scheduler.framework.results import Code
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.extending import HEAD, FakeExtenders, binds_in, only
from support.scenarios.start import Start

NAMES = "filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true"
WHOLE = "filterVerb: filter, prioritizeVerb: prioritize, weight: 1"
IGNORABLE = f"{NAMES}, ignorable: true"


LEFT_OUT = 'node(s) removed without a reason by extender "http://x/a"'


def start_with_nodes(start: Start, extenders: FakeExtenders, nodes: int = 3, **options: Any) -> SchedulerHarness:
    harness = start(extenders.configuration, ask=extenders.ask, **options)
    for number in range(1, nodes + 1):
        harness.cluster.add(make_node(f"n{number}", cpu="2"))
    return harness


def message(harness: SchedulerHarness, pod: str = "p") -> tuple[str, str]:
    condition = harness.cluster.conditions(pod)["PodScheduled"]
    return condition.reason, condition.message


@pytest.mark.parametrize("fields", [NAMES, WHOLE])
def test_only_a_node_that_the_extender_keeps_is_chosen(start: Start, fields: str) -> None:
    """Nodes are sent by name or whole; a single node is not scored."""
    extenders = FakeExtenders(a=fields)
    extenders.replies["a/filter"] = only("n2")
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"
    assert [(asked.path, asked.nodes) for asked in extenders.calls] == [("a/filter", ["n1", "n2", "n3"])]


def test_each_extender_gets_the_nodes_that_the_previous_one_kept(start: Start) -> None:
    """They are called one after the other, ignorable ones last; prioritize calls are concurrent."""
    extenders = FakeExtenders(late=IGNORABLE, a=NAMES, b=WHOLE)
    extenders.replies = {"a/filter": only("n1", "n3", "n4"), "b/filter": only("n4", "n3")}
    extenders.delays = {"a/prioritize": 1.0, "b/prioritize": 1.0, "late/prioritize": 1.0}
    harness = start_with_nodes(start, extenders, nodes=4)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert [(asked.path, asked.nodes) for asked in extenders.calls[:3]] == [
        ("a/filter", ["n1", "n2", "n3", "n4"]),
        ("b/filter", ["n1", "n3", "n4"]),
        ("late/filter", ["n3", "n4"]),
    ]
    assert [(asked.path, asked.time) for asked in extenders.calls[3:]] == [
        ("a/prioritize", 0.0),
        ("b/prioritize", 0.0),
        ("late/prioritize", 0.0),
    ]
    assert harness.time == 1.0


def test_failed_nodes_are_in_the_message(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """They are added to the plugins' reasons; nodes that do not exist are ignored, those without a reason counted."""
    caplog.set_level(logging.INFO, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=NAMES)
    failed = {"n1": "no licence", "ghost": "boo"}
    extenders.replies["a/filter"] = only(failed=failed, lost={"n2": "wrong site", "n1": "no licence at all"})
    harness = start_with_nodes(start, extenders, nodes=4)
    harness.cluster.add(make_node("small", cpu="100m"))
    harness.cluster.add(make_pod("p", cpu="1"))
    harness.run_until_idle()
    reasons = f"1 Insufficient cpu, 1 no licence at all, 1 wrong site, 2 {LEFT_OUT}."
    reason, text = message(harness)
    assert reason == "Unschedulable"
    assert text.startswith(f"0/5 nodes are available: {reasons}")
    assert 'that do not exist extender="http://x/a" nodes=1 first="ghost"' in caplog.text
    outcome = harness.attempts.about("p")[0]
    assert isinstance(outcome, Failed)
    assert outcome.plugins == {"Extender", "NodeResourcesFit"}


@pytest.mark.parametrize("answer", [b"{}", b"null", b'{"NodeNames": []}', b'{"Nodes": null, "FailedNodes": null}'])
def test_an_empty_answer(start: Start, answer: bytes) -> None:
    """No node is left then, as in Go; the message names the extender."""
    extenders = FakeExtenders(fine=NAMES, a=NAMES)
    extenders.replies["a/filter"] = lambda _: answer
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    event = harness.events.about("p")[0]
    assert message(harness) == ("Unschedulable", event.note)
    assert event.note.startswith(f"0/3 nodes are available: 3 {LEFT_OUT}.")


def test_a_rejected_pod_retries_on_any_event(start: Start) -> None:
    """The events that may change an extender's result are unknown."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = only()
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.place_of("p") == "unschedulable"
    del extenders.replies["a/filter"]
    harness.cluster.add(make_pod("other", node="n3"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p")


def test_scores_are_weighted_and_added(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Ten points of an extender are 100; scores of other hosts are ignored, and logged."""
    caplog.set_level(logging.INFO, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=NAMES, b=WHOLE.replace("weight: 1", "weight: 3"))
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": 10}, {"Host": "n9", "Score": 10}]
    extenders.replies["b/prioritize"] = lambda _: [{"Host": "n3", "Score": 2}, {"Host": "n3", "Score": 2}]
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n3"
    ignored = "Ignoring extender scores of nodes that were not sent"
    assert caplog.messages == [f'{ignored} extender="http://x/a" nodes=1 first="n9"']


def test_an_equal_answer_has_an_equal_result(start: Start) -> None:
    """The result of an answer is cached; for other nodes, or another verb, it is computed again."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies = {"a/filter": only("n1", "n2", "n4"), "a/prioritize": lambda _: [{"Host": "n2", "Score": 10}]}
    harness = start_with_nodes(start, extenders)
    for name in ("p", "q"):
        harness.cluster.add(make_pod(name))
    harness.run_until_idle()
    assert {harness.cluster.node_of(name) for name in ("p", "q")} == {"n2"}
    harness.cluster.add(make_node("n4"))
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n4", "Score": 10}]
    for name in ("r", "s"):
        harness.cluster.add(make_pod(name))
    harness.run_until_idle()
    assert {harness.cluster.node_of(name) for name in ("r", "s")} == {"n4"}
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": 10}]
    harness.cluster.add(make_pod("t"))
    harness.run_until_idle()
    assert harness.cluster.node_of("t") == "n1"


def test_plugins_scores_are_added_to_those_of_extenders(start: Start) -> None:
    """A small preference of the extender does not outweigh a node that is nearly full."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": 1}]
    harness = start_with_nodes(start, extenders, nodes=2)
    harness.cluster.add(make_pod("busy", cpu="1900m", node="n1"))
    harness.run_until_idle()
    harness.cluster.add(make_pod("p", cpu="50m"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"


@pytest.mark.parametrize(
    "answer",
    [
        ExtenderError("dead"),
        b"{}",
        b"[{]",
        b'[{"Host": "n1", "Score": "high"}]',
        b'[{"Host": "n1", "Score": 9223372036854775808}]',
    ],
)
def test_an_extender_that_fails_to_score_is_ignored(
    start: Start, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The pod is scheduled by the other scores; the log has the reason."""
    caplog.set_level(logging.INFO - 5, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=NAMES, b=NAMES)
    extenders.replies = {"a/prioritize": lambda _: answer, "b/prioritize": lambda _: [{"Host": "n2", "Score": 10}]}
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"
    [line] = caplog.messages
    assert line.startswith("Failed to run extender's priority function. No score given by this extender. error=")
    assert line.endswith('pod="default/p" extender="http://x/a"')


def test_huge_scores_are_limited(start: Start) -> None:
    """The largest integers do not overflow."""
    top = 2**63 - 1
    extenders = FakeExtenders(a=NAMES.replace("weight: 1", f"weight: {top}"), b=NAMES)
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": -top}, {"Host": "n2", "Score": top}]
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"


UNKNOWN = 'extender "http://x/a" claims a filtered node "n9" which is not found in the input node list'


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ExtenderError("dead"), "dead"),
        ({"Error": "out of order"}, 'out of order (extender "http://x/a")'),
        ({"NodeNames": ["n9"]}, UNKNOWN),
        ({"Nodes": {"items": [{"metadata": {"name": "n9"}}]}}, UNKNOWN),
        ({"NodeNames": [None]}, UNKNOWN.replace("n9", "")),
        (b"", 'Post "http://x/a/filter": the answer cannot be decoded: it is empty'),
        (b"[]", 'Post "http://x/a/filter": the answer cannot be decoded: Expected `object`'),
        (b"<html>", 'Post "http://x/a/filter": the answer cannot be decoded: '),
        ({"NodeNames": "n1"}, 'Post "http://x/a/filter": the answer cannot be decoded: Expected `array'),
    ],
)
def test_a_failing_filter_fails_that_attempt_only(start: Start, answer: Any, error: str) -> None:
    """The pod gets the message and is retried with backoff; other pods are not affected."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = lambda call: (
        answer if call.body["Pod"]["metadata"]["name"] == "p" else {"NodeNames": ["n1"]}
    )
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.cluster.add(make_pod("q"))
    harness.run_for(0.5)
    assert harness.cluster.node_of("q") == "n1"
    reason, text = message(harness)
    assert reason == "SchedulerError"
    assert text.startswith(error)
    del extenders.replies["a/filter"]
    harness.run_until_idle()
    assert harness.cluster.node_of("p")


def test_the_failure_of_an_ignorable_extender_is_ignored(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """That applies to filtering and binding; the failure is logged."""
    caplog.set_level(logging.INFO, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=IGNORABLE, b=f"bindVerb: bind, {IGNORABLE}")
    extenders.replies["a/filter"] = extenders.replies["b/bind"] = lambda _: ExtenderError("dead")
    extenders.replies["b/filter"] = only("n3")
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n3"
    assert caplog.messages == [
        'Skipping extender as it returned error and has ignorable flag set extender="http://x/a" err="dead"',
        'Skipping extender in bind as it returned error and has ignorable flag set extender="http://x/b" err="dead"',
    ]


def test_an_extender_that_binds_replaces_the_plugins(start: Start) -> None:
    """It gets the pod and the node; no plugin binds the pod."""
    extenders = FakeExtenders(a="bindVerb: bind")
    harness = start_with_nodes(start, extenders, nodes=1)
    extenders.replies["a/bind"] = binds_in(harness.cluster)
    pod = harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n1"}
    [call] = extenders.calls
    uid = pod.metadata.uid
    assert call.body == {"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": "n1"}
    assert [event.reason for event in harness.events.about("p")] == ["Scheduled"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"Error": "locked"}, 'locked (extender "http://x/a")'),
        (ExtenderError("lost"), "lost"),
        (b"", 'Post "http://x/a/bind": the answer cannot be decoded: it is empty'),
    ],
)
def test_a_failed_binding_by_an_extender(start: Start, answer: Any, error: str) -> None:
    """The pod gets the message, is retried, and then bound by the extender."""
    extenders = FakeExtenders(a="bindVerb: bind")
    extenders.replies["a/bind"] = lambda _: answer
    harness = start_with_nodes(start, extenders, nodes=1)
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.5)
    assert message(harness) == ("SchedulerError", error)
    assert harness.core.cluster.assumed_count == 0
    extenders.replies["a/bind"] = binds_in(harness.cluster)
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n1"


def test_the_capacity_of_a_claimed_binding_is_free_after_the_pod_is_deleted(start: Start) -> None:
    """An extender returns that it has bound a pod, and has not: others wait while that pod exists."""
    extenders = FakeExtenders(a="bindVerb: bind")
    extenders.replies["a/bind"] = lambda _: {}
    harness = start(configuration=extenders.configuration, ask=extenders.ask)
    harness.cluster.add(make_node("n1", cpu="1"))
    lost = harness.cluster.add(make_pod("lost", cpu="1"))
    harness.run_for(0.5)
    extenders.replies["a/bind"] = binds_in(harness.cluster)
    harness.cluster.add(make_pod("next", cpu="1"))
    harness.run_for(0.5)
    assert harness.bindings == {}
    harness.cluster.delete(lost)
    harness.run_until_idle()
    assert harness.bindings == {"default/next": "n1"}


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_an_extender_is_called_for_pods_that_request_its_resources(start: Start, where: str) -> None:
    """These are in requests or limits of any container; ignored resources do not make a pod unschedulable."""
    managed = "managedResources: [{name: example.com/foo, ignoredByScheduler: true}]"
    extenders = FakeExtenders(a=f"{NAMES}, bindVerb: bind, {managed}")
    harness = start_with_nodes(start, extenders)
    extenders.replies = {"a/filter": only("n2"), "a/bind": binds_in(harness.cluster)}
    harness.cluster.add(make_pod("plain"))
    harness.run_until_idle()
    assert extenders.calls == []
    resources = {"limits": {"example.com/foo": "1"}, "requests": {"example.com/foo": "1"}}
    spec = {"containers": [{"name": "c"}]} | {where: [{"name": "x", "resources": resources}]}
    harness.cluster.add(make_pod("p", spec=spec))
    harness.run_until_idle()
    assert extenders.paths == ["a/filter", "a/bind"]
    assert harness.cluster.node_of("p") == "n2"


def test_a_filtering_extender_gets_all_nodes_without_score_plugins(start: Start) -> None:
    """Without scores, one feasible node would be enough, but not if an extender filters after the plugins."""
    extenders = FakeExtenders(a="filterVerb: filter, nodeCacheCapable: true")
    extenders.replies["a/filter"] = only("n3")
    extenders.configuration += "profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]\n"
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n3"


def test_as_many_nodes_are_sent_as_the_search_finds(start: Start) -> None:
    """percentageOfNodesToScore applies; nodes that were not searched have no reason, and preemption ignores them."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = lambda call: {"NodeNames": [], "FailedNodes": dict.fromkeys(call.nodes, "no")}
    extenders.configuration += "percentageOfNodesToScore: 50\n"
    harness = start_with_nodes(start, extenders, nodes=300)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert len(extenders.calls[0].nodes) == 150
    assert message(harness)[1].startswith("0/300 nodes are available: 150 no.")


def test_extenders_cannot_be_called_without_a_client(start: Start) -> None:
    """A harness without extenders returns an error."""
    harness = start(f"{HEAD}extenders: [{{urlPrefix: 'http://x', filterVerb: f}}]")
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.5)
    assert message(harness) == ("SchedulerError", 'Post "http://x/f": extenders cannot be called from here')


def test_outcomes_of_extenders_distinguish_errors_from_rejections(start: Start) -> None:
    """An error is no rejection: there is no event to wait for."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = lambda _: ExtenderError("dead")
    harness = start_with_nodes(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.5)
    outcome = harness.attempts.about("p")[0]
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.plugins) == (Code.ERROR, frozenset())
