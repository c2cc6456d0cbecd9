"""The address at which the scheduler serves its pages."""

import ipaddress
import socket
from dataclasses import dataclass

from kubestow.server.http.listening import listen


@dataclass(frozen=True, slots=True)
class Listening:
    """The address and port to listen on."""

    address: str = "0.0.0.0"  # noqa: S104 kube-scheduler's default
    port: int = 10259
    share_port: bool = False

    @property
    def host(self) -> str:
        """The address; empty for all IPv4 and IPv6 addresses."""
        return "" if ipaddress.ip_address(self.address).is_unspecified else self.address

    @property
    def certificate_hosts(self) -> list[str]:
        """The host names of a self-signed certificate."""
        return ["localhost", "127.0.0.1", *filter(None, [self.host]), socket.gethostname()]

    def open(self) -> socket.socket:
        """Return a listening socket. Raises ListenError if the address cannot be used."""
        return listen(self.host, self.port, "--secure-port", share_port=self.share_port)
