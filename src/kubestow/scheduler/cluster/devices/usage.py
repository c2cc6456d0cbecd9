"""What claims hold of the devices of a pool."""

from kubestow.api.devices import DeviceRequestAllocationResult
from kubestow.api.quantity import nano


class PoolUsage:
    """Counts, not sets: a device that two claims hold is free only when both have let go."""

    __slots__ = ("capacity", "dedicated", "shares", "version")

    def __init__(self) -> None:
        self.dedicated: dict[str, int] = {}
        """By device, how many claims hold the whole of it."""
        self.shares: dict[str, int] = {}
        """By device, how many claims hold a share of it."""
        self.capacity: dict[str, dict[str, int]] = {}
        """By device, what its shares consume of each capacity, in nano-units."""
        self.version = 0

    @property
    def is_empty(self) -> bool:
        return not self.dedicated and not self.shares

    def holds(self, device: str) -> bool:
        """Whether any claim holds the device or a share of it."""
        return device in self.dedicated or device in self.shares

    def count(self, result: DeviceRequestAllocationResult, sign: int, *, shared: bool) -> None:
        """A claim got, or gave back, a device or a share of it."""
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
