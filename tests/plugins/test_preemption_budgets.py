"""Disruption budgets: pods whose eviction would break one are spared first, and nodes without such are preferred."""

import pytest

from kubestow.testing.builders import make_pod
from plugins.preemption_world import World

VIP = make_pod("vip", cpu="2", priority=10)


def test_a_node_without_broken_budgets_is_preferred() -> None:
    """Even if more important pods must leave there."""
    world = World("a", "b")
    world.run("protected", "a", cpu="4", priority=0, labels={"app": "web"})
    world.run("other", "b", cpu="4", priority=9)
    world.budget("web", allowed=0)
    assert world.preempt(VIP).nominated_node == "b"


def test_pods_whose_eviction_breaks_a_budget_are_spared_first() -> None:
    """The more important, unprotected pod leaves so that the protected one may stay."""
    world = World("a")
    world.run("unprotected", "a", cpu="2", priority=5)
    world.run("protected", "a", cpu="2", priority=0, labels={"app": "web"})
    world.budget("web", allowed=0)
    assert world.victims(VIP) == ["unprotected"]


def test_a_budget_is_used_up_by_the_most_important_pods() -> None:
    """Of two pods with one disruption allowed, evicting the less important one breaks the budget: it is spared."""
    world = World("a")
    world.run("first", "a", cpu="2", priority=5, labels={"app": "web"})
    world.run("second", "a", cpu="2", priority=1, labels={"app": "web"})
    world.budget("web", allowed=1)
    assert world.victims(VIP) == ["first"]


def test_victims_come_most_important_first_whatever_their_budgets() -> None:
    """The order in which it was tried to spare them does not show."""
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
    """The pod leaves like any other: it is the less important one."""
    world = World("a")
    world.run("unprotected", "a", cpu="2", priority=5)
    world.run("protected", "a", cpu="2", priority=0, labels={"app": "web"})
    world.budget("web", **budget)  # type: ignore[arg-type]
    assert world.victims(VIP) == ["protected"]


def test_pods_without_labels_are_protected_by_nobody() -> None:
    """Even by a budget whose selector would match them."""
    world = World("a")
    world.run("unlabelled", "a", cpu="2", priority=0)
    world.run("other", "a", cpu="2", priority=5, labels={"app": "x"})
    world.budget("not-db", allowed=0, selector={"matchExpressions": [{"key": "db", "operator": "DoesNotExist"}]})
    assert world.victims(VIP) == ["unlabelled"]


def test_a_broken_budget_is_better_than_not_running() -> None:
    """If every node breaks one, the node that breaks the fewest is chosen."""
    world = World("a", "b")
    for name in ("a1", "a2"):
        world.run(name, "a", cpu="2", priority=0, labels={"app": "web"})
    world.run("b1", "b", cpu="4", priority=5, labels={"app": "web"})
    world.budget("web", allowed=0)
    result = world.preempt(make_pod("vip", cpu="4", priority=10))
    assert (result.nominated_node, [victim.name for victim in result.victims]) == ("b", ["b1"])
