"""Disruption budgets: pods that violate one are reprieved first, and nodes without violations are preferred."""

import pytest

from kubestow.testing.builders import make_pod
from support.plugins.preemption_world import World

VIP = make_pod("vip", cpu="2", priority=10)


def test_a_node_without_violated_budgets_is_preferred() -> None:
    """It is preferred even if more important pods are evicted there."""
    world = World("a", "b")
    world.run("protected", "a", cpu="4", priority=0, labels={"app": "web"})
    world.run("other", "b", cpu="4", priority=9)
    world.budget("web", allowed=0)
    assert world.preempt(VIP).nominated_node == "b"


def test_pods_that_violate_a_budget_are_reprieved_first() -> None:
    """The more important, unprotected pod is evicted instead of the protected one."""
    world = World("a")
    world.run("unprotected", "a", cpu="2", priority=5)
    world.run("protected", "a", cpu="2", priority=0, labels={"app": "web"})
    world.budget("web", allowed=0)
    assert world.victims(VIP) == ["unprotected"]


def test_the_most_important_pods_use_up_a_budget() -> None:
    """Of two pods with one disruption allowed, evicting the less important one violates the budget: it is reprieved."""
    world = World("a")
    world.run("first", "a", cpu="2", priority=5, labels={"app": "web"})
    world.run("second", "a", cpu="2", priority=1, labels={"app": "web"})
    world.budget("web", allowed=1)
    assert world.victims(VIP) == ["first"]


def test_a_pod_that_violates_one_budget_does_not_use_up_others() -> None:
    """Evicting the second pod violates no budget, so it costs less than evicting the more important one elsewhere."""
    world = World("a", "b")
    world.run("first", "a", cpu="2", priority=5, labels={"app": "web", "tier": "front"})
    world.run("second", "a", cpu="2", priority=1, labels={"app": "web"})
    world.run("other", "b", cpu="4", priority=3)
    world.budget("front", allowed=0, selector={"matchLabels": {"tier": "front"}})
    world.budget("web", allowed=1)
    assert world.preempt(VIP).nominated_node == "a"


def test_victims_are_ordered_by_importance_not_by_budgets() -> None:
    """The order in which they are reprieved does not affect the result."""
    world = World("a")
    world.run("high", "a", cpu="2", priority=5)
    world.run("low", "a", cpu="2", priority=0, labels={"app": "web"})
    world.budget("web", allowed=0)
    assert world.victims(make_pod("vip", cpu="4", priority=10)) == ["high", "low"]


@pytest.mark.parametrize(
    "budget",
    [
        {"allowed": 0, "disrupted": {"protected": None}},
        {"allowed": 0, "namespace": "elsewhere"},
        {"allowed": 0, "selector": {}},
        {"allowed": 0, "selector": None},
        {"allowed": 0, "selector": {"matchExpressions": [{"key": "app", "operator": "Nonsense"}]}},
        {"allowed": 1},
    ],
    ids=["eviction already counted", "other namespace", "empty", "none", "invalid", "enough allowed"],
)
def test_budgets_that_do_not_protect(budget: dict[str, object]) -> None:
    """The less important pod is evicted as without a budget."""
    world = World("a")
    world.run("unprotected", "a", cpu="2", priority=5)
    world.run("protected", "a", cpu="2", priority=0, labels={"app": "web"})
    world.budget("web", **budget)  # type: ignore[arg-type]
    assert world.victims(VIP) == ["protected"]


def test_pods_without_labels_are_not_protected() -> None:
    """They are not protected even by a budget whose selector matches them."""
    world = World("a")
    world.run("unlabelled", "a", cpu="2", priority=0)
    world.run("other", "a", cpu="2", priority=5, labels={"app": "x"})
    world.budget("not-db", allowed=0, selector={"matchExpressions": [{"key": "db", "operator": "DoesNotExist"}]})
    assert world.victims(VIP) == ["unlabelled"]


def test_budgets_are_violated_if_there_is_no_other_way() -> None:
    """If every node violates one, the node with the fewest violations is chosen."""
    world = World("a", "b")
    for name in ("a1", "a2"):
        world.run(name, "a", cpu="2", priority=0, labels={"app": "web"})
    world.run("b1", "b", cpu="4", priority=5, labels={"app": "web"})
    world.budget("web", allowed=0)
    result = world.preempt(make_pod("vip", cpu="4", priority=10))
    assert (result.nominated_node, [victim.name for victim in result.victims]) == ("b", ["b1"])
