"""The allocations from the devices of a pool."""

from kubestow.api.devices import DeviceRequestAllocationResult
from kubestow.api.quantity import nano


class PoolUsage:
    """Counts, not sets: a device that two claims have allocated is free only when both have released it."""

    __slots__ = ("capacity", "dedicated", "shares", "version")

    def __init__(self) -> None:
        self.dedicated: dict[str, int] = {}
        """Number of claims that have allocated the whole device, by device."""
        self.shares: dict[str, int] = {}
        """Number of claims that have allocated a share of the device, by device."""
        self.capacity: dict[str, dict[str, int]] = {}
        """Consumption of each capacity by shares, by device and capacity, in nano-units."""
        self.version = 0

    @property
    def is_empty(self) -> bool:
        return not self.dedicated and not self.shares

    def holds(self, device: str) -> bool:
        """Return whether any claim has allocated the device or a share of it."""
        return device in self.dedicated or device in self.shares

    def count(self, result: DeviceRequestAllocationResult, sign: int, *, shared: bool) -> None:
        """Count (1) or remove (-1) the allocation of a device or of a share of it."""
        self.version += 1
        device = result.device
        if not shared:
            _add(self.dedicated, device, sign)
            return
        _add(self.shares, device, sign)
        if result.consumedCapacity:
            consumed = self.capacity.setdefault(device, {})
            for name, amount in result.consumedCapacity.items():
                _add(consumed, name, sign * nano(amount))
            if not consumed:
                del self.capacity[device]


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    count = counts.get(key, 0) + amount
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
