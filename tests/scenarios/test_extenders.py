"""Filter, prioritize and bind by extenders, as pods and people see it."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.extenders.extender import ExtenderError
from kubestow.scheduler.framework.results import Code
from kubestow.testing import SchedulerHarness, make_node, make_pod
from scenarios.extending import HEAD, FakeExtenders, binds_in, only

Start = Callable[..., SchedulerHarness]

NAMES = "filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true"
WHOLE = "filterVerb: filter, prioritizeVerb: prioritize, weight: 1"
IGNORABLE = f"{NAMES}, ignorable: true"


LEFT_OUT = 'node(s) removed without a reason by extender "http://x/a"'


def world(start: Start, extenders: FakeExtenders, nodes: int = 3, **options: Any) -> SchedulerHarness:
    harness = start(extenders.configuration, ask=extenders.ask, **options)
    for number in range(1, nodes + 1):
        harness.cluster.add(make_node(f"n{number}", cpu="2"))
    return harness


def message(harness: SchedulerHarness, pod: str = "p") -> tuple[str, str]:
    condition = harness.cluster.conditions(pod)["PodScheduled"]
    return condition.reason, condition.message


@pytest.mark.parametrize("fields", [NAMES, WHOLE])
def test_only_a_node_that_the_extender_lets_pass_is_taken(start: Start, fields: str) -> None:
    """By names or by whole nodes; a single node is not scored."""
    extenders = FakeExtenders(a=fields)
    extenders.replies["a/filter"] = only("n2")
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"
    assert [(asked.path, asked.nodes) for asked in extenders.asked] == [("a/filter", ["n1", "n2", "n3"])]


def test_each_extender_is_asked_about_what_the_last_one_left(start: Start) -> None:
    """One after the other, those that may be ignored last; prioritizing is side by side."""
    extenders = FakeExtenders(late=IGNORABLE, a=NAMES, b=WHOLE)
    extenders.replies = {"a/filter": only("n1", "n3", "n4"), "b/filter": only("n4", "n3")}
    extenders.delays = {"a/prioritize": 1.0, "b/prioritize": 1.0, "late/prioritize": 1.0}
    harness = world(start, extenders, nodes=4)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert [(asked.path, asked.nodes) for asked in extenders.asked[:3]] == [
        ("a/filter", ["n1", "n2", "n3", "n4"]),
        ("b/filter", ["n1", "n3", "n4"]),
        ("late/filter", ["n3", "n4"]),
    ]
    assert [(asked.path, asked.time) for asked in extenders.asked[3:]] == [
        ("a/prioritize", 0.0),
        ("b/prioritize", 0.0),
        ("late/prioritize", 0.0),
    ]
    assert harness.time == 1.0


def test_failed_nodes_are_in_the_message(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """With the plugins' reasons; nodes that do not exist do not count, and who left some out without a word is told."""
    caplog.set_level(logging.INFO, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=NAMES)
    failed = {"n1": "no licence", "ghost": "boo"}
    extenders.replies["a/filter"] = only(failed=failed, lost={"n2": "wrong site", "n1": "no licence at all"})
    harness = world(start, extenders, nodes=4)
    harness.cluster.add(make_node("small", cpu="100m"))
    harness.cluster.add(make_pod("p", cpu="1"))
    harness.run_until_idle()
    words = f"1 Insufficient cpu, 1 no licence at all, 1 wrong site, 2 {LEFT_OUT}."
    reason, said = message(harness)
    assert reason == "Unschedulable"
    assert said.startswith(f"0/5 nodes are available: {words}")
    assert 'that do not exist extender="http://x/a" nodes=1 first="ghost"' in caplog.text
    outcome = harness.attempts.about("p")[0]
    assert isinstance(outcome, Failed)
    assert outcome.plugins == {"Extender", "NodeResourcesFit"}


@pytest.mark.parametrize("answer", [b"{}", b"null", b'{"NodeNames": []}', b'{"Nodes": null, "FailedNodes": null}'])
def test_an_answer_that_says_nothing(start: Start, answer: bytes) -> None:
    """No node is left then, as Go reads it; the pod is told who is to blame."""
    extenders = FakeExtenders(fine=NAMES, a=NAMES)
    extenders.replies["a/filter"] = lambda _: answer
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    event = harness.events.about("p")[0]
    assert message(harness) == ("Unschedulable", event.note)
    assert event.note.startswith(f"0/3 nodes are available: 3 {LEFT_OUT}.")


def test_a_rejected_pod_retries_on_any_event(start: Start) -> None:
    """Nobody knows what an extender waits for."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = only()
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.place_of("p") == "unschedulable"
    del extenders.replies["a/filter"]
    harness.cluster.add(make_pod("other", node="n3"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p")


def test_scores_are_weighted_and_added(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Ten of the extender's points are a hundred; hosts that nobody asked about do not matter, but are told of."""
    caplog.set_level(logging.INFO, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=NAMES, b=WHOLE.replace("weight: 1", "weight: 3"))
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": 10}, {"Host": "n9", "Score": 10}]
    extenders.replies["b/prioritize"] = lambda _: [{"Host": "n3", "Score": 2}, {"Host": "n3", "Score": 2}]
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n3"
    words = "Ignoring extender scores of nodes that were not sent"
    assert caplog.messages == [f'{words} extender="http://x/a" nodes=1 first="n9"']


def test_the_same_answer_again_is_the_same_again(start: Start) -> None:
    """What an answer came to is remembered; about other nodes, or to another question, it is not the same."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies = {"a/filter": only("n1", "n2", "n4"), "a/prioritize": lambda _: [{"Host": "n2", "Score": 10}]}
    harness = world(start, extenders)
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


def test_plugins_scores_count_beside_the_extenders(start: Start) -> None:
    """A small preference of the extender does not outweigh a node that is nearly full."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": 1}]
    harness = world(start, extenders, nodes=2)
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
def test_who_cannot_score_is_left_out(start: Start, answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The pod is scheduled by what the others say; the log has the reason."""
    caplog.set_level(logging.INFO - 5, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=NAMES, b=NAMES)
    extenders.replies = {"a/prioritize": lambda _: answer, "b/prioritize": lambda _: [{"Host": "n2", "Score": 10}]}
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"
    [line] = caplog.messages
    assert line.startswith("Failed to run extender's priority function. No score given by this extender. error=")
    assert line.endswith('pod="default/p" extender="http://x/a"')


def test_scores_beyond_measure_are_kept_within_bounds(start: Start) -> None:
    """The largest numbers there are neither overflow nor turn round."""
    top = 2**63 - 1
    extenders = FakeExtenders(a=NAMES.replace("weight: 1", f"weight: {top}"), b=NAMES)
    extenders.replies["a/prioritize"] = lambda _: [{"Host": "n1", "Score": -top}, {"Host": "n2", "Score": top}]
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n2"


UNKNOWN = 'extender "http://x/a" claims a filtered node "n9" which is not found in the input node list'


@pytest.mark.parametrize(
    ("answer", "words"),
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
def test_a_failing_filter_fails_that_attempt_only(start: Start, answer: Any, words: str) -> None:
    """The pod is told why and tried again with backoff; other pods are not touched."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = lambda asked: (
        answer if asked.body["Pod"]["metadata"]["name"] == "p" else {"NodeNames": ["n1"]}
    )
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.cluster.add(make_pod("q"))
    harness.run_for(0.5)
    assert harness.cluster.node_of("q") == "n1"
    reason, said = message(harness)
    assert reason == "SchedulerError"
    assert said.startswith(words)
    del extenders.replies["a/filter"]
    harness.run_until_idle()
    assert harness.cluster.node_of("p")


def test_one_that_may_be_ignored_is_passed_over_when_it_fails(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """For filtering and for binding; the log tells."""
    caplog.set_level(logging.INFO, "kubestow.scheduler.extenders")
    extenders = FakeExtenders(a=IGNORABLE, b=f"bindVerb: bind, {IGNORABLE}")
    extenders.replies["a/filter"] = extenders.replies["b/bind"] = lambda _: ExtenderError("dead")
    extenders.replies["b/filter"] = only("n3")
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n3"
    assert caplog.messages == [
        'Skipping extender as it returned error and has ignorable flag set extender="http://x/a" err="dead"',
        'Skipping extender in bind as it returned error and has ignorable flag set extender="http://x/b" err="dead"',
    ]


def test_an_extender_that_binds_replaces_the_plugins(start: Start) -> None:
    """It is told who and where; nobody else binds."""
    extenders = FakeExtenders(a="bindVerb: bind")
    harness = world(start, extenders, nodes=1)
    extenders.replies["a/bind"] = binds_in(harness.cluster)
    pod = harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n1"}
    [asked] = extenders.asked
    uid = pod.metadata.uid
    assert asked.body == {"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": "n1"}
    assert [event.reason for event in harness.events.about("p")] == ["Scheduled"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"Error": "locked"}, 'locked (extender "http://x/a")'),
        (ExtenderError("lost"), "lost"),
        (b"", 'Post "http://x/a/bind": the answer cannot be decoded: it is empty'),
    ],
)
def test_a_binding_that_fails_is_given_back(start: Start, answer: Any, words: str) -> None:
    """The pod is told, tried again, and bound by the extender then."""
    extenders = FakeExtenders(a="bindVerb: bind")
    extenders.replies["a/bind"] = lambda _: answer
    harness = world(start, extenders, nodes=1)
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.5)
    assert message(harness) == ("SchedulerError", words)
    assert harness.core.cluster.assumed_count == 0
    extenders.replies["a/bind"] = binds_in(harness.cluster)
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n1"


def test_the_room_of_a_binding_that_was_never_made_is_free_once_the_pod_is_gone(start: Start) -> None:
    """An extender says that it has bound a pod, and has not: others wait as long as that pod is there."""
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
def test_only_pods_that_ask_for_managed_resources_concern_it(start: Start, where: str) -> None:
    """In requests or limits of any container; what the scheduler is to ignore does not make a pod unschedulable."""
    managed = "managedResources: [{name: example.com/foo, ignoredByScheduler: true}]"
    extenders = FakeExtenders(a=f"{NAMES}, bindVerb: bind, {managed}")
    harness = world(start, extenders)
    extenders.replies = {"a/filter": only("n2"), "a/bind": binds_in(harness.cluster)}
    harness.cluster.add(make_pod("plain"))
    harness.run_until_idle()
    assert extenders.asked == []
    resources = {"limits": {"example.com/foo": "1"}, "requests": {"example.com/foo": "1"}}
    spec = {"containers": [{"name": "c"}]} | {where: [{"name": "x", "resources": resources}]}
    harness.cluster.add(make_pod("p", spec=spec))
    harness.run_until_idle()
    assert extenders.paths == ["a/filter", "a/bind"]
    assert harness.cluster.node_of("p") == "n2"


def test_an_extender_that_filters_sees_all_nodes_without_score_plugins(start: Start) -> None:
    """Where nothing was to be scored, one passing node would do, but not for whoever filters after the plugins."""
    extenders = FakeExtenders(a="filterVerb: filter, nodeCacheCapable: true")
    extenders.replies["a/filter"] = only("n3")
    extenders.configuration += "profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]\n"
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p") == "n3"


def test_as_many_nodes_are_sent_as_are_looked_for(start: Start) -> None:
    """percentageOfNodesToScore holds; of nodes nobody looked at nothing is said, and preemption does not try them."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = lambda asked: {"NodeNames": [], "FailedNodes": dict.fromkeys(asked.nodes, "no")}
    extenders.configuration += "percentageOfNodesToScore: 50\n"
    harness = world(start, extenders, nodes=300)
    harness.cluster.add(make_pod("p"))
    harness.run_until_idle()
    assert len(extenders.asked[0].nodes) == 150
    assert message(harness)[1].startswith("0/300 nodes are available: 150 no.")


def test_nothing_can_be_asked_without_a_way_to_ask(start: Start) -> None:
    """A harness that is given no extenders says so."""
    harness = start(f"{HEAD}extenders: [{{urlPrefix: 'http://x', filterVerb: f}}]")
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.5)
    assert message(harness) == ("SchedulerError", 'Post "http://x/f": extenders cannot be called from here')


def test_outcomes_of_extenders_tell_errors_from_rejections(start: Start) -> None:
    """An error is no rejection: there is no event to wait for."""
    extenders = FakeExtenders(a=NAMES)
    extenders.replies["a/filter"] = lambda _: ExtenderError("dead")
    harness = world(start, extenders)
    harness.cluster.add(make_pod("p"))
    harness.run_for(0.5)
    outcome = harness.attempts.about("p")[0]
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.plugins) == (Code.ERROR, frozenset())
