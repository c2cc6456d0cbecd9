"""Host ports: the ports of a node that its pods use."""

import msgspec

from kubestow.api.pod import Pod
from kubestow.api.requests import is_sidecar

ANY_IP = "0.0.0.0"  # noqa: S104 - means every address of a node in the API; nothing is bound here


class HostPort(msgspec.Struct, frozen=True):
    """A port of a node, on one of its addresses or on all of them."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: "HostPort") -> bool:
        """Return whether the two ports cannot be used on the same node."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.ip == other.ip or ANY_IP in (self.ip, other.ip))
        )


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of a running pod: those of sidecars, then those of containers."""
    spec = pod.spec
    containers = spec.containers
    if spec.initContainers:
        containers = (*filter(is_sidecar, spec.initContainers), *containers)
    return tuple(
        HostPort(port.hostIP or ANY_IP, port.protocol or "TCP", port.hostPort)
        for container in containers
        for port in container.ports
        if port.hostPort > 0
    )
