"""TaintToleration: untolerated taints reject nodes or reduce their score."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.taint_toleration import TaintToleration
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected, scores

TAINTED = unresolvable("node(s) had untolerated taint(s)")


def tolerating(**toleration: Any) -> Pod:
    return make_pod("p", spec={"tolerations": [toleration]})


@pytest.mark.parametrize(
    ("taint", "toleration", "passes"),
    [
        ("gpu=yes:NoSchedule", {}, False),
        ("gpu=yes:NoExecute", {}, False),
        ("gpu=yes:PreferNoSchedule", {}, True),
        ("gpu=yes:NoSchedule", {"key": "gpu", "operator": "Exists"}, True),
        ("gpu=yes:NoSchedule", {"key": "gpu", "value": "yes"}, True),
        ("gpu=yes:NoSchedule", {"key": "gpu", "value": "no"}, False),
        ("gpu=yes:NoSchedule", {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ("gpu=yes:NoSchedule", {"operator": "Exists"}, True),
    ],
)
def test_repelling_taints(taint: str, toleration: dict[str, Any], passes: bool) -> None:
    """NoSchedule and NoExecute reject, unless a toleration matches key, value and effect."""
    pod = tolerating(**toleration) if toleration else make_pod("p")
    cluster = cluster_of(make_node("clean"), make_node("tainted", taints=[taint]))
    assert rejected(make(TaintToleration), cluster, pod) == ({} if passes else {"tainted": TAINTED})


def test_every_taint_must_be_tolerated() -> None:
    """One untolerated taint rejects the node."""
    cluster = cluster_of(make_node("n", taints=["a:NoSchedule", "b:NoSchedule"]))
    assert rejected(make(TaintToleration), cluster, make_pod("p", tolerations=["a"])) == {"n": TAINTED}
    assert rejected(make(TaintToleration), cluster, make_pod("p", tolerations=["a", "b"])) == {}


@pytest.mark.parametrize(
    ("operator", "value", "passes"), [("Gt", "5", False), ("Gt", "3", True), ("Lt", "5", True), ("Lt", "4", False)]
)
def test_comparison_operators(operator: str, value: str, passes: bool) -> None:
    """With the gate, `Gt` and `Lt` compare the values of taint and toleration; without it, they never match."""
    cluster = cluster_of(make_node("n", taints=["level=4:NoSchedule"]))
    pod = tolerating(key="level", operator=operator, value=value)
    plugin = make(TaintToleration, taint_toleration_comparison_operators=True)
    assert rejected(plugin, cluster, pod) == ({} if passes else {"n": TAINTED})
    assert rejected(make(TaintToleration, taint_toleration_comparison_operators=False), cluster, pod) == {"n": TAINTED}


def test_scores_count_untolerated_prefer_no_schedule_taints() -> None:
    """Fewer is better; only tolerations with that effect, or with none, count."""
    cluster = cluster_of(
        make_node("none"),
        make_node("one", taints=["a:PreferNoSchedule", "c:NoSchedule"]),
        make_node("two", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"]),
    )
    plugin = make(TaintToleration)
    assert scores(plugin, cluster, make_pod("p")) == {"none": 100, "one": 50, "two": 0}
    assert scores(plugin, cluster, make_pod("p", tolerations=["a"])) == {"none": 100, "one": 100, "two": 0}
    assert scores(plugin, cluster, make_pod("p", tolerations=["a:NoSchedule"])) == {"none": 100, "one": 50, "two": 0}
    assert scores(plugin, cluster, make_pod("p", tolerations=["a", "b"])) == dict.fromkeys(("none", "one", "two"), 100)


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [
        (None, [], True),
        (None, ["a:NoSchedule"], False),
        (["a:NoSchedule"], [], True),
        (["a:NoSchedule"], ["b:NoSchedule"], False),
        ([], ["a:PreferNoSchedule"], False),
    ],
)
def test_node_events_that_requeue(before: list[str] | None, after: list[str], worth: bool) -> None:
    """A node that is added without repelling taints, or loses those that repelled the pod."""
    old = None if before is None else make_node("n", taints=before)
    assert hint(make(TaintToleration), make_pod("p"), old, make_node("n", taints=after)) is worth


def test_toleration_events_that_requeue() -> None:
    """Only the pod's own tolerations."""
    plugin, pod, more = make(TaintToleration), make_pod("p"), make_pod("p", tolerations=["a"])
    assert hint(plugin, pod, pod, more) is True
    assert hint(plugin, make_pod("q"), pod, more) is None
    assert hint(plugin, pod, pod, convert(Pod, {"metadata": {"name": "p", "labels": {"x": "y"}}})) is None
