"""Backtracking search for the devices of claims on one node.

Claims, requests and devices are tried in their order, so that the result is deterministic. `picks` has the devices
taken so far. A choice is a generator: each step takes a device and yields what to find next; resuming the generator
releases that device and tries the next one. The search is a stack of choices, one per device to find.

Devices of one kind are interchangeable: if the search fails with one of them, the others are not tried, and neither are
devices that cannot suffice. If the search can end with an error, all devices are tried, because the error that comes
first in the order of the search is reported.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from kubestow.api.lazy import lazy
from kubestow.scheduler.cluster.devices import DeviceEntry, PoolView
from kubestow.scheduler.cluster.devices.entries import CounterName
from kubestow.scheduler.cluster.devices.pools import common_groups
from kubestow.scheduler.plugins.dynamic_resources.capacity import CapacityError, Consumption
from kubestow.scheduler.plugins.dynamic_resources.constraints import Constrained
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError
from kubestow.scheduler.plugins.dynamic_resources.requests import MAX_RESULTS, Option, Request, WantedClaim

_STEPS_PER_TIME_CHECK = 256
"""Number of steps between two checks of the time limit."""


class Rules(msgspec.Struct, frozen=True):
    """Enabled features."""

    partitions: bool
    taints: bool
    conditions: bool
    shares: bool
    groups: bool
    operations: bool
    """Whether operations on nodes can be skipped."""


class Pick(NamedTuple):
    """A device taken for an option of a claim."""

    position: int
    """The index among all devices that the pools offer."""
    option: Option
    device: DeviceEntry
    pool: PoolView
    consumption: Consumption | None
    """The consumed capacity, for shared devices only."""
    counted: bool
    """Whether it consumes shared counters of the pool."""


class _Next(NamedTuple):
    """What to find next: a device for an option, at position `start` or later."""

    claim: int
    request: int
    option: Option | None
    """None: an alternative must be chosen first."""
    number: int
    """Number of devices of the option that have been found."""
    start: int


_DONE = _Next(-1, 0, None, 0, 0)


def offered(pools: Sequence[PoolView]) -> list[tuple[DeviceEntry, PoolView, bool]]:
    """Return all devices in search order, each with its pool and whether the node can use it."""
    return [
        (device, pool, here)
        for pool in pools
        if pool.problem is None
        for device, here in zip(pool.devices, pool.here, strict=True)
    ]


def device_at(pools: Sequence[PoolView], position: int) -> DeviceEntry:
    """Return the device at a position among all that are offered; pools with a problem have none."""
    for pool in pools:
        if position < len(pool.devices):
            return pool.devices[position]
        position -= len(pool.devices)
    raise IndexError("position exceeds the number of devices in the pools")


class Search:
    """A search for all devices of some claims, in the pools of one node."""

    def __init__(
        self,
        claims: Sequence[WantedClaim],
        keys: Sequence[str],
        pools: Sequence[PoolView],
        rules: Rules,
        check_time: Callable[[], None],
        *,
        may_skip: bool,
    ) -> None:
        """`may_skip`: whether devices that require skipping operations on the node can be used."""
        self._claims = claims
        self._keys = keys
        self._pools = pools
        self._rules = rules
        self._check_time = check_time
        self._may_skip = may_skip
        self._devices = offered(pools)
        self.picks: list[list[Pick]] = [[] for _ in claims]
        """The devices taken for each claim, in that order."""
        self.chosen: dict[tuple[int, int], Option] = {}
        """The chosen alternatives, by claim and request."""
        self._constrained = [[*map(Constrained, claim.constraints)] for claim in claims]
        self._taken: defaultdict[DeviceEntry, list[int]] = defaultdict(list)
        """The claims for which a device was taken."""
        self._counters: defaultdict[tuple[PoolView, CounterName], int] = defaultdict(int)
        self._groups: defaultdict[tuple[PoolView, str], list[frozenset[str]]] = defaultdict(list)
        """The common compatibility groups in a counter set, after each device that was taken."""
        self._capacity: dict[DeviceEntry, list[Consumption]] = {}
        self._all: dict[Option, list[int]] = {}
        """The positions of all matching devices, for options with allocation mode All."""
        self._exceeded = -1
        """The claim that would exceed its maximum number of devices; -1: none."""

    def run(self) -> bool:
        """Run the search and return whether all devices were found. Raises AllocationError."""
        for number, claim in enumerate(self._claims):
            self._count_required(number, claim)
        first = self._after(0, -1)
        if first is _DONE:
            return True
        stack, steps = [self._choices(first)], 0
        while stack:
            steps += 1
            if not steps % _STEPS_PER_TIME_CHECK:
                self._check_time()
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
            elif following is _DONE:
                return True
            else:
                stack.append(self._choices(following))
        return False

    # Number of devices to find

    def _count_required(self, number: int, claim: WantedClaim) -> None:
        least = 0
        for request in claim.requests:
            for option in request.options:
                if option.all_devices:
                    self._all[option] = self._positions_of_all(option, self._keys[number])
            least += min(self._count(option) for option in request.options)
        if least > MAX_RESULTS:
            problem = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise AllocationError(f"claim {self._keys[number]}: {problem}")

    def _count(self, option: Option) -> int:
        return len(self._all[option]) if option.all_devices else option.count

    def _positions_of_all(self, option: Option, claim: str) -> list[int]:
        positions: list[int] = []
        position = 0
        for pool in self._pools:
            if pool.problem is not None:
                problem = f"asks for all devices, but resource pool {'/'.join(pool.id)} is {pool.problem.value}"
                raise AllocationError(f"claim {claim}, request {option.own_name}: {problem}")
            for device, here in zip(pool.devices, pool.here, strict=True):
                if self._is_selectable(option, device, here, claim) and (
                    not self._rules.shares or self._consumption(claim, option, device, device.name) is not None
                ):
                    positions.append(position)
                position += 1
        return positions

    # Order of the search

    def _after(self, claim: int, request: int) -> _Next:
        """Return what to find after a request is satisfied."""
        request += 1
        while claim < len(self._claims):
            requests = self._claims[claim].requests
            if request < len(requests):
                wanted = requests[request]
                option = None if wanted.is_list else wanted.options[0]
                if option is None or option.all_devices or option.count > 0:
                    return _Next(claim, request, option, 0, 0)
                request += 1
            else:
                claim, request = claim + 1, 0
        return _DONE

    def _choices(self, at: _Next) -> Iterator[_Next]:
        if at.option is None:
            return self._choose_option(at)
        if at.option.all_devices:
            return self._take_all(at, at.option)
        return self._choose_device(at, at.option)

    def _has_exceeded(self, claim: int) -> bool:
        """Return whether the last step failed because this claim would exceed its limit; ignore later claims."""
        if self._exceeded != claim:
            self._exceeded = -1
        return self._exceeded == claim

    def _choose_option(self, at: _Next) -> Iterator[_Next]:
        exceeded = True
        for option in self._claims[at.claim].requests[at.request].options:
            self.chosen[at.claim, at.request] = option
            if option.all_devices or option.count > 0:
                yield at._replace(option=option)
            else:
                yield self._after(at.claim, at.request)
            if self._has_exceeded(at.claim):
                # Another option may need fewer devices.
                self._exceeded = -1
            else:
                exceeded = False
        if exceeded:
            self._exceeded = at.claim

    def _following(self, at: _Next, option: Option, position: int) -> _Next:
        if at.number + 1 < self._count(option):
            return _Next(at.claim, at.request, option, at.number + 1, position + 1)
        return self._after(at.claim, at.request)

    @lazy
    def _max_devices(self) -> float:
        """Upper limit for the number of devices that can be taken."""
        if any(option.admin for claim in self._claims for request in claim.requests for option in request.options):
            return math.inf
        free = 0
        for device, pool, here in self._devices:
            if device.shared and self._rules.shares:
                return math.inf
            free += here and device.name not in pool.usage.dedicated
        return free

    def _needed_after(self, claim: int, request: int) -> int:
        """Return the minimum number of devices for everything after a request."""
        rest = [*self._claims[claim].requests[request + 1 :]]
        rest += [of for other in self._claims[claim + 1 :] for of in other.requests]
        return sum(min(self._count(option) for option in of.options) for of in rest)

    def _exceeds_limit(self, at: _Next, option: Option) -> bool:
        if len(self.picks[at.claim]) + self._count(option) - at.number <= MAX_RESULTS:
            return False
        self._exceeded = at.claim
        return True

    def _take_all(self, at: _Next, option: Option) -> Iterator[_Next]:
        positions = self._all[option]
        if not positions or self._exceeds_limit(at, option):
            return
        position = positions[at.number]
        device, pool, _ = self._devices[position]
        if not self._is_free(at.claim, option, device, pool):
            return
        if not self._take(at.claim, option, position, must=True):
            return
        yield self._following(at, option, 0)
        self._release(at.claim)

    def _choose_device(self, at: _Next, option: Option) -> Iterator[_Next]:
        if self._exceeds_limit(at, option):
            return
        tried = set[tuple[PoolView, int]]()
        for position in range(at.start, len(self._devices)):
            device, pool, here = self._devices[position]
            if not self._is_free(at.claim, option, device, pool):
                continue
            if not self._is_selectable(option, device, here, self._keys[at.claim]):
                continue
            kind = (pool, device.kind)
            if kind in tried and not self._can_fail:
                continue
            if not self._has_capacity(at.claim, option, device, pool):
                continue
            took = self._take(at.claim, option, position, must=False)
            if not device.shared and not option.admin:
                tried.add(kind)
            if not took:
                continue
            yield self._following(at, option, position)
            self._release(at.claim)
            if self._has_exceeded(at.claim) or not (self._may_suffice(at, option, position) or self._can_fail):
                return

    @lazy
    def _can_fail(self) -> bool:
        """Whether the search can end with an error, depending on the devices that are taken."""
        return any(
            self._can_fail_for(number, request, option)
            for number, claim in enumerate(self._claims)
            for request in claim.requests
            for option in request.options
        )

    def _can_fail_for(self, claim: int, request: Request, option: Option) -> bool:
        if option.all_devices:
            return any(self._can_be_violated(claim, request, option, number) for number in option.constraints)
        constraints = [self._claims[claim].constraints[number] for number in option.constraints if option.derived]
        try:
            for device, _, _ in self._devices:
                option.selection.matches(device, self._keys[claim])
                if self._rules.shares:
                    option.consumption(device)
                for constraint in constraints:
                    constraint.values_of(device, option.derived)
        except (AllocationError, CapacityError):
            return True
        return False

    def _can_be_violated(self, claim: int, request: Request, option: Option, number: int) -> bool:
        """Return whether a constraint can prevent taking all devices of an option with allocation mode All."""
        others = [of for other in self._claims[claim].requests if other is not request for of in other.options]
        if option.derived or any(number in other.constraints for other in others):
            return True
        constraint = Constrained(self._claims[claim].constraints[number])
        for position in self._all[option]:
            device, _, _ = self._devices[position]
            if not constraint.admits(device, option.derived):
                return True
            constraint.add(device, option.derived)
        return False

    def _may_suffice(self, at: _Next, option: Option, position: int) -> bool:
        """Return whether the devices after a position may suffice for those still to find.

        This detects too few devices without trying all combinations. It evaluates no selectors.
        """
        missing = self._count(option) - at.number
        if sum(map(len, self.picks)) + missing + self._needed_after(at.claim, at.request) > self._max_devices:
            return False
        if option.derived and self._can_fail:
            return True
        constrained = self._constrained_by(at.claim, option)
        for device, pool, here in self._devices[position + 1 :]:
            if not here or not option.selection.may_match(device):
                continue
            if not self._is_free(at.claim, option, device, pool) or not all(
                of.admits(device, option.derived) for of in constrained
            ):
                continue
            missing -= 1
            if not missing:
                return True
        return False

    # Single devices

    def _is_free(self, claim: int, option: Option, device: DeviceEntry, pool: PoolView) -> bool:
        taken = self._taken.get(device)
        if option.admin:
            return not taken or claim not in taken
        return not taken and device.name not in pool.usage.dedicated

    def _is_selectable(self, option: Option, device: DeviceEntry, here: bool, claim: str) -> bool:
        if device.device.bindingConditions and not self._rules.conditions:
            return False
        return option.selection.matches(device, claim) and here

    def _consumption(self, claim: str, option: Option, device: DeviceEntry, name: str) -> Consumption | None:
        """Return what an option consumes of a device, of which an error has the given name."""
        try:
            return option.consumption(device)
        except CapacityError as error:
            where = f"claim {claim}, request {option.own_name}"
            raise AllocationError(f"{where}: checking capacity for device {name}: {error}") from None

    def _has_capacity(self, claim: int, option: Option, device: DeviceEntry, pool: PoolView) -> bool:
        """Return whether enough capacity is left for a share of a device."""
        if not self._rules.shares:
            return True
        consumption = self._consumption(self._keys[claim], option, device, device.id)
        if consumption is None:
            return False
        used = pool.usage.capacity.get(device.name)
        taken = self._capacity.get(device)
        if used is None and not taken:
            return True
        for name, amount, total in consumption.amounts:
            others = 0 if used is None else used.get(name, 0)
            others += sum(of for other in taken or () for own, of, _ in other.amounts if own == name)
            if others + amount > total:
                return False
        return True

    def _take(self, claim: int, option: Option, position: int, *, must: bool) -> bool:
        """Take a free, selectable device if counters, taints and constraints allow it; return whether it was taken."""
        device, pool, _ = self._devices[position]
        if device.slice.skipped_operations and not self._may_skip:
            return False
        is_shared = self._rules.shares and device.shared
        counted = False
        if device.counters:
            if not self._rules.partitions:
                return False
            counted = not (is_shared and (device.name in pool.usage.shares or device in self._capacity))
            if counted and not (self._is_compatible(device, pool) and self._counters_suffice(device, pool)):
                return False
        if self._rules.taints and device.taints and not option.tolerates(device):
            return False
        constrained = self._constrained_by(claim, option)
        for number, constraint in enumerate(constrained):
            if not constraint.admits(device, option.derived):
                _release(constrained[:number])
                if must:
                    problem = f"cannot add device {device.id} because a claim constraint would not be satisfied"
                    raise AllocationError(f"claim {self._keys[claim]}, request {option.own_name}: {problem}")
                return False
            constraint.add(device, option.derived)
        if must and not self._has_capacity(claim, option, device, pool):
            _release(constrained)
            return False
        if counted:
            for name, amount in device.counters:
                self._counters[pool, name] += amount
            for counter_set, groups in device.groups:
                present = self._groups_of(pool, counter_set)
                self._groups[pool, counter_set].append(common_groups(present, groups))
        consumption = option.consumption(device) if is_shared else None
        if consumption is not None:
            self._capacity.setdefault(device, []).append(consumption)
        else:
            self._taken[device].append(claim)
        self.picks[claim].append(Pick(position, option, device, pool, consumption, counted))
        return True

    def _constrained_by(self, claim: int, option: Option) -> list[Constrained]:
        return [self._constrained[claim][number] for number in option.constraints]

    def _groups_of(self, pool: PoolView, counter_set: str) -> frozenset[str] | None:
        taken = self._groups.get((pool, counter_set))
        return taken[-1] if taken else pool.groups.get(counter_set)

    def _is_compatible(self, device: DeviceEntry, pool: PoolView) -> bool:
        """Return whether a device shares a compatibility group with all that use the same counter sets."""
        if not self._rules.groups:
            return True
        found = [(self._groups_of(pool, counter_set), groups) for counter_set, groups in device.groups]
        return not any(present is not None and present.isdisjoint(groups) for present, groups in found)

    def _counters_suffice(self, device: DeviceEntry, pool: PoolView) -> bool:
        left = pool.left
        if min(left.values()) < 0:
            # The pool is overcommitted: nothing more is taken from it.
            return False
        needed: dict[CounterName, int] = {}
        for name, amount in device.counters:
            needed[name] = needed.get(name, 0) + amount
        return all(left[name] - self._counters.get((pool, name), 0) >= amount for name, amount in needed.items())

    def _release(self, claim: int) -> None:
        _, option, device, pool, consumption, counted = self.picks[claim].pop()
        if consumption is not None:
            shares = self._capacity[device]
            shares.pop()
            if not shares:
                del self._capacity[device]
        else:
            self._taken[device].remove(claim)
        _release(self._constrained_by(claim, option))
        if counted:
            for name, amount in device.counters:
                self._counters[pool, name] -= amount
            for counter_set, _ in device.groups:
                self._groups[pool, counter_set].pop()


def _release(constrained: Sequence[Constrained]) -> None:
    for constraint in constrained:
        constraint.remove()
