"""Host ports in use: the rows and addresses on which each port is taken."""

from collections.abc import Iterable

from kubestow.api.ports import ANY_IP, HostPort
from kubestow.scheduler.cluster.pods import PodInfo


class PortIndex:
    """Pods that use each (protocol, port), counted by row and address."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[tuple[int, str], int]] = {}

    def copy(self) -> "PortIndex":
        """Return an independent copy."""
        other = PortIndex()
        other._users = {port: users.copy() for port, users in self._users.items()}
        return other

    def add(self, row: int, pod: PodInfo, amount: int) -> None:
        for port in pod.ports:
            users = self._users.setdefault((port.protocol, port.port), {})
            place = (row, port.ip)
            count = users.get(place, 0) + amount
            if count:
                users[place] = count
            else:
                users.pop(place, None)
                if not users:
                    del self._users[port.protocol, port.port]

    def rows_in_conflict(self, ports: Iterable[HostPort]) -> set[int]:
        """Return the rows on which one of the ports is taken; an unspecified address conflicts with every address."""
        taken: set[int] = set()
        for port in ports:
            for row, address in self._users.get((port.protocol, port.port), ()):
                if ANY_IP in (address, port.ip) or address == port.ip:
                    taken.add(row)
        return taken
