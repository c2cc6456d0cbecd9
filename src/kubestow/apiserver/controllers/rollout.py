"""The arithmetic of roll-outs: how many pods each ReplicaSet of a Deployment may have next.

Pure functions of numbers. Two bounds hold at every step: never more pods than wanted plus surge, never fewer available
ones than wanted minus unavailable, as far as the pods themselves allow.
"""

import math
from typing import Any, NamedTuple


class Share(NamedTuple):
    """One ReplicaSet of a Deployment."""

    name: str
    replicas: int
    available: int = 0
    limit: int = 0
    """The most pods the Deployment could have when this set was last scaled."""


def share(value: Any, total: int, *, up: bool) -> int:
    """A number, or a percentage of a total."""
    if isinstance(value, str) and value.endswith("%"):
        exact = int(value[:-1]) * total / 100
        return math.ceil(exact) if up else math.floor(exact)
    return int(value)


def bounds(rolling: dict[str, Any] | None, wanted: int) -> tuple[int, int]:
    """Surge and unavailable as numbers; at least one of them moves."""
    limits = rolling or {}
    surge = share(limits.get("maxSurge", "25%"), wanted, up=True)
    unavailable = min(wanted, share(limits.get("maxUnavailable", "25%"), wanted, up=False))
    return surge, unavailable if surge or unavailable else 1


def roll(wanted: int, surge: int, unavailable: int, newest: Share, older: list[Share]) -> dict[str, int]:
    """The next size of each set that changes: the newest grows as far as it may, else the oldest shrink."""
    total = newest.replicas + sum(one.replicas for one in older)
    if newest.replicas > wanted:
        return {newest.name: wanted}
    room = min(wanted + surge - total, wanted - newest.replicas)
    if room > 0:
        return {newest.name: newest.replicas + room}
    needed = wanted - unavailable
    sizes = {one.name: one.replicas for one in older}
    # Pods of older sets that never became available are no loss; the rest go as far as availability allows.
    may_go = max(0, total - needed - max(0, newest.replicas - newest.available))
    for one in older:
        gone = max(0, min(one.replicas - one.available, may_go))
        sizes[one.name] -= gone
        may_go -= gone
    may_go = min(may_go, max(0, newest.available + sum(one.available for one in older) - needed))
    for one in older:
        gone = min(sizes[one.name], may_go)
        sizes[one.name] -= gone
        may_go -= gone
    return {one.name: sizes[one.name] for one in older if sizes[one.name] != one.replicas}


def rescale(wanted: int, surge: int, newest: Share | None, older: list[Share]) -> dict[str, int]:
    """Sizes after the Deployment itself was scaled: one active set takes all, several share in proportion.

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
    # Largest first; of equals the newest when there is more to give, the oldest when there is less.
    ranked = sorted(reversed(active) if change > 0 else active, key=lambda one: -one.replicas)
    sizes = {one.name: one.replicas for one in ranked}
    given = 0
    for one in ranked:
        if change == given:
            break
        part = _fraction(one, wanted, limit)
        part = max(0, min(part, change - given)) if change > 0 else min(0, max(part, change - given))
        sizes[one.name] += part
        given += part
    if ranked:
        sizes[ranked[0].name] = max(0, sizes[ranked[0].name] + change - given)
    return {one.name: sizes[one.name] for one in ranked if sizes[one.name] != one.replicas}


def _fraction(one: Share, wanted: int, limit: int) -> int:
    """By how many pods a set grows or shrinks to keep its part of the whole."""
    if wanted == 0:
        return -one.replicas
    return math.floor(one.replicas * limit / (one.limit or limit) + 0.5) - one.replicas
