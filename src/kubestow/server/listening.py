"""Where the scheduler serves its pages."""

import ipaddress
import socket
from dataclasses import dataclass

from kubestow.server.http.listening import listen


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen."""

    address: str = "0.0.0.0"  # noqa: S104 kube-scheduler's default
    port: int = 10259
    share_port: bool = False

    @property
    def host(self) -> str:
        """The address; empty for all addresses, of both families."""
        return "" if ipaddress.ip_address(self.address).is_unspecified else self.address

    @property
    def certificate_hosts(self) -> list[str]:
        """Names for a certificate that is made up."""
        return ["localhost", "127.0.0.1", *filter(None, [self.host]), socket.gethostname()]

    def open(self) -> socket.socket:
        """Raises ListenError."""
        return listen(self.host, self.port, "--secure-port", share_port=self.share_port)
