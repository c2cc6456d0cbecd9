"""The arithmetic of rollouts keeps its bounds in every state of the pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.controllers.rollout import Share, bounds, rescale, roll, share


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [("25%", 10, True, 3), ("25%", 10, False, 2), (4, 10, True, 4), ("0%", 7, True, 0), ("100%", 7, False, 7)],
)
def test_a_share_is_a_number_or_a_percentage(value: int | str, total: int, up: bool, expected: int) -> None:
    """The surge is rounded up, unavailability down."""
    assert share(value, total, up=up) == expected


def test_a_rollout_always_progresses() -> None:
    """If both limits are zero, one pod may be unavailable."""
    assert bounds({"maxSurge": 0, "maxUnavailable": "10%"}, 5) == (0, 1)


@given(
    wanted=st.integers(0, 12),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    old=st.lists(st.integers(0, 6), max_size=3),
    luck=st.lists(st.integers(0, 100), min_size=60, max_size=60),
)
def test_a_rollout_keeps_its_bounds_and_ends(
    wanted: int, surge: int, unavailable: int, old: list[int], luck: list[int]
) -> None:
    """The bounds hold unless they were exceeded at the start, and the rollout completes."""
    if not surge and not unavailable:
        unavailable = 1
    unavailable = min(unavailable, wanted) or (0 if surge else 1)
    newest = Share("new", 0)
    older = [Share(f"old-{number}", size, size) for number, size in enumerate(old)]
    begun_with = sum(old)
    least = min(sum(old), wanted - unavailable)
    for step in range(60):
        sizes = roll(wanted, surge, unavailable, newest, older)
        # Pods are deleted immediately; some of the created ones become available.
        newest, *older = [
            one._replace(
                replicas=sizes.get(one.name, one.replicas),
                available=min(one.available, sizes.get(one.name, one.replicas)),
            )
            for one in (newest, *older)
        ]
        total = newest.replicas + sum(one.replicas for one in older)
        assert total <= max(begun_with, wanted + surge)
        assert newest.available + sum(one.available for one in older) >= least
        ready = newest.available + (luck[step] % 3)
        newest = newest._replace(available=min(newest.replicas, ready if step < 30 else newest.replicas))
    assert (newest.replicas, sum(one.replicas for one in older)) == (wanted, 0)


@given(
    wanted=st.integers(0, 40),
    surge=st.integers(0, 10),
    sizes=st.lists(st.integers(1, 20), min_size=2, max_size=5),
)
def test_scaling_during_a_rollout_keeps_the_proportions(wanted: int, surge: int, sizes: list[int]) -> None:
    """The sum is the limit, unless rounding already left nothing of the largest set; no set grows if others shrink."""
    limit = sum(sizes)
    shares = [Share(f"s{number}", size, size, limit) for number, size in enumerate(sizes)]
    if shares[-1].replicas == wanted:
        return
    changed = rescale(wanted, surge, shares[-1], shares[:-1])
    after = {one.name: changed.get(one.name, one.replicas) for one in shares}
    allowed = wanted + surge if wanted else 0
    # As in kube-controller-manager, the largest set takes the remainder, and cannot have fewer than 0 pods.
    largest = max(shares, key=lambda one: one.replicas)
    assert sum(after.values()) == allowed or (sum(after.values()) > allowed and after[largest.name] == 0)
    growing = sum(after.values()) > limit
    for one in shares:
        assert after[one.name] >= one.replicas if growing else after[one.name] <= one.replicas


def test_one_active_set_takes_all() -> None:
    """Scaling without a rollout is simple."""
    assert rescale(7, 2, Share("new", 3, 3), [Share("old", 0)]) == {"new": 7}
