"""The arithmetic of rollouts: the next size of each ReplicaSet of a Deployment, as pure functions of numbers.

Two bounds hold at every step: at most the desired number of pods plus the surge, and at least the desired number minus
the unavailable ones, as far as the pods themselves are available.
"""

import math
from typing import Any, NamedTuple


class Share(NamedTuple):
    """The sizes of one ReplicaSet of a Deployment."""

    name: str
    replicas: int
    available: int = 0
    limit: int = 0
    """Maximum number of pods of the Deployment when this set was last scaled."""


def share(value: Any, total: int, *, up: bool) -> int:
    """Return the value of a number or a percentage of a total, rounded up or down."""
    if isinstance(value, str) and value.endswith("%"):
        exact = int(value[:-1]) * total / 100
        return math.ceil(exact) if up else math.floor(exact)
    return int(value)


def bounds(rolling: dict[str, Any] | None, wanted: int) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers, at least one of which is positive."""
    limits = rolling or {}
    surge = share(limits.get("maxSurge", "25%"), wanted, up=True)
    unavailable = min(wanted, share(limits.get("maxUnavailable", "25%"), wanted, up=False))
    return surge, unavailable if surge or unavailable else 1


def roll(wanted: int, surge: int, unavailable: int, newest: Share, older: list[Share]) -> dict[str, int]:
    """Return the next size of each set that changes: the newest grows up to the limit, or the older ones shrink."""
    total = newest.replicas + sum(one.replicas for one in older)
    if newest.replicas > wanted:
        return {newest.name: wanted}
    growth = min(wanted + surge - total, wanted - newest.replicas)
    if growth > 0:
        return {newest.name: newest.replicas + growth}
    needed = wanted - unavailable
    sizes = {one.name: one.replicas for one in older}
    # First the unavailable pods of older sets, then available ones down to the minimum.
    removable = max(0, total - needed - max(0, newest.replicas - newest.available))
    for one in older:
        removed = max(0, min(one.replicas - one.available, removable))
        sizes[one.name] -= removed
        removable -= removed
    removable = min(removable, max(0, newest.available + sum(one.available for one in older) - needed))
    for one in older:
        removed = min(sizes[one.name], removable)
        sizes[one.name] -= removed
        removable -= removed
    return {one.name: sizes[one.name] for one in older if sizes[one.name] != one.replicas}


def rescale(wanted: int, surge: int, newest: Share | None, older: list[Share]) -> dict[str, int]:
    """Return the sizes after the Deployment was scaled: one active set takes all pods, several share in proportion.

    `older` is oldest first.
    """
    active = [one for one in (*older, *([newest] if newest else ())) if one.replicas]
    if len(active) <= 1:
        only = active[0] if active else newest or (older[-1] if older else None)
        return {only.name: wanted} if only is not None and only.replicas != wanted else {}
    if newest is not None and newest.replicas == newest.available == wanted:
        return {one.name: 0 for one in older if one.replicas}
    limit = wanted + surge if wanted else 0
    change = limit - sum(one.replicas for one in active)
    # Largest first; among equal sizes the newest when scaling up, the oldest when scaling down.
    ranked = sorted(reversed(active) if change > 0 else active, key=lambda one: -one.replicas)
    sizes = {one.name: one.replicas for one in ranked}
    assigned = 0
    for one in ranked:
        if change == assigned:
            break
        part = _fraction(one, wanted, limit)
        part = max(0, min(part, change - assigned)) if change > 0 else min(0, max(part, change - assigned))
        sizes[one.name] += part
        assigned += part
    if ranked:
        sizes[ranked[0].name] = max(0, sizes[ranked[0].name] + change - assigned)
    return {one.name: sizes[one.name] for one in ranked if sizes[one.name] != one.replicas}


def _fraction(one: Share, wanted: int, limit: int) -> int:
    """Return the number of pods by which a set grows or shrinks to keep its proportion of the total."""
    if wanted == 0:
        return -one.replicas
    return math.floor(one.replicas * limit / (one.limit or limit) + 0.5) - one.replicas
