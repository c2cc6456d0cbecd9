"""The amount of a device's capacities that a request consumes.

A capacity may have a policy: the default amount if a request names none, and the valid amounts, to which requested
amounts are rounded up.
"""

from collections.abc import Mapping

import msgspec

from kubestow.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from kubestow.api.meta import RawQuantity
from kubestow.api.quantity import canonical, nano, value


class Consumption(msgspec.Struct, frozen=True):
    """The consumption of a device's capacities by a request."""

    amounts: tuple[tuple[str, int, int], ...]
    """(name, consumed amount, total amount) of each capacity, in nano-units."""
    quantities: Mapping[str, str]
    """The consumed amounts as quantities, by name."""


def consumption_of(wanted: Mapping[str, RawQuantity], capacities: Mapping[str, DeviceCapacity]) -> Consumption | None:
    """Return what a request consumes of a device; None if the request does not fit even on the unused device."""
    if any(name not in capacities for name in wanted):
        return None
    amounts, quantities = [], {}
    for name, capacity in capacities.items():
        amount = _consumed(wanted.get(name), capacity)
        consumed, total = nano(amount), nano(capacity.value)
        if consumed > total or _violates(amount, capacity.requestPolicy):
            return None
        amounts.append((name, consumed, total))
        quantities[name] = canonical(amount)
    return Consumption(tuple(amounts), quantities)


def _consumed(wanted: RawQuantity | None, capacity: DeviceCapacity) -> RawQuantity:
    policy = capacity.requestPolicy
    if wanted is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return wanted
    if policy.validRange is not None and policy.validRange.min is not None:
        return _rounded_up(wanted, policy.validRange, policy.validRange.min)
    return next((valid for valid in policy.validValues if nano(wanted) <= nano(valid)), wanted)


def _rounded_up(wanted: RawQuantity, valid: CapacityRequestPolicyRange, least: RawQuantity) -> RawQuantity:
    if nano(wanted) < nano(least):
        return least
    if valid.step is None:
        return wanted
    step, start = value(valid.step), value(least)
    steps = -((start - value(wanted)) // step)
    amount = start + steps * step
    return f"{amount // 1024}Ki" if amount % 1024 == 0 else amount


def _violates(amount: RawQuantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and nano(amount) == nano(policy.default)):
        return False
    valid = policy.validRange
    if valid is not None:
        if valid.max is not None and nano(amount) > nano(valid.max):
            return True
        return valid.step is not None and (value(amount) - value(valid.min or 0)) % value(valid.step) != 0
    return bool(policy.validValues) and all(nano(amount) != nano(one) for one in policy.validValues)
