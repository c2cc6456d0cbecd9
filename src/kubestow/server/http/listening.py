"""Opens the socket that a server listens on. The kernel queues connections until the server accepts them."""

import errno
import socket

_BACKLOG = 1024


class ListenError(Exception):
    """The address cannot be used; the message contains the reason and a remedy."""


def listen(address: str, port: int, flag: str, *, share_port: bool = False) -> socket.socket:
    """Return a listening socket; an empty address means all IPv4 and IPv6 addresses, port 0 any free port.

    Raises ListenError, which names the flag, if the address cannot be used.
    """
    try:
        return _listen(address, port, share_port)
    except OSError as error:
        raise ListenError(_explain(error, address, port, flag)) from error


def _listen(address: str, port: int, share_port: bool) -> socket.socket:
    both = not address and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.getaddrinfo(address or "0.0.0.0", None)[0][0]  # noqa: S104
    listener = socket.create_server(
        (address, port), family=family, backlog=_BACKLOG, reuse_port=share_port, dualstack_ipv6=both
    )
    listener.setblocking(False)
    return listener


def _explain(error: OSError, address: str, port: int, flag: str) -> str:
    where = address or "all addresses"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {where} is in use; stop what listens there, or choose another with {flag}"
    if error.errno == errno.EACCES:
        return f"not allowed to listen on port {port}; choose one above 1023 with {flag}"
    return f"cannot listen on {where}:{port}: {error.strerror or error}"
