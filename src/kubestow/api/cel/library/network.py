"""IP addresses and networks in CIDR notation."""

from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Any

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library, succeeds
from kubestow.api.cel.library.costs import reading
from kubestow.api.cel.library.strings import quote
from kubestow.api.cel.values import KubernetesValue

LIBRARY = Library()
define = LIBRARY.define


class IP(KubernetesValue):
    """An IP address; the key is an object of `ipaddress`."""

    __slots__ = ()
    type_name = "net.IP"
    go_type = "cel.IP"

    def __str__(self) -> str:
        return str(self.key)


class CIDR(IP):
    """An address with a prefix length; `key` is an IPv4Interface or IPv6Interface of `ipaddress`."""

    __slots__ = ()
    type_name = "net.CIDR"
    go_type = "cel.CIDR"


@define("ip", "(string) -> ip", cost=reading)
def to_ip(text: str) -> IP:
    try:
        address = _address(text)
    except ValueError as error:
        problem = f"IP Address {quote(text)} parse error during conversion from string"
        raise EvaluationError(f"{problem}: {error}") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IP(address)


@define("cidr", "(string) -> cidr", cost=reading)
def to_cidr(text: str) -> CIDR:
    problem = "network address parse error during conversion from string"
    try:
        interface = _interface(text)
    except ValueError as error:
        raise EvaluationError(f"{problem}: {problem}: netip.ParsePrefix({quote(text)}): {error}") from None
    if isinstance(interface, IPv6Interface) and interface.ip.ipv4_mapped is not None:
        raise EvaluationError(f"{problem}: IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CIDR(interface)


def _address(text: str) -> IPv4Address | IPv6Address:
    """Parse an address. Raises ValueError, with the message of Go for IPv4 addresses."""
    try:
        return ip_address(text)
    except ValueError:
        first = next((letter for letter in text if letter in ".:%"), "")
        problem = {".": _dotted_problem(text), "%": "missing IPv6 address"}.get(first, "unable to parse IP")
        raise ValueError(f"ParseAddr({quote(text)}): {problem}") from None


def _dotted_problem(text: str) -> str:
    for position, letter in enumerate(text):
        if letter not in ".0123456789":
            return f"unexpected character (at {quote(text[position:])})"
        if letter == "." and (position in (0, len(text) - 1) or text[position - 1] == "."):
            return f"IPv4 field must have at least one digit (at {quote(text[position:])})"
        field = text[: position + 1].rpartition(".")[2]
        if len(field) > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if field and int(field) > 255:
            return "IPv4 field has value >255"
        if text[: position + 1].count(".") > 3:
            return "IPv4 address too long"
    return "IPv4 address too short"


def _interface(text: str) -> IPv4Interface | IPv6Interface:
    address, slash, length = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    found = _address(address)
    if "%" in address:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not (length.isascii() and length.isdigit()) or (length != "0" and length[0] == "0"):
        raise ValueError(f"bad bits after slash: {quote(length)}")
    if int(length) > found.max_prefixlen:
        raise ValueError("prefix length out of range")
    return ip_interface(text)


define("isIP", "(string) -> bool", cost=reading)(succeeds(to_ip))
define("isCIDR", "(string) -> bool", cost=reading)(succeeds(to_cidr))
define("ip.isCanonical", "(string) -> bool", cost=reading)(lambda text: str(to_ip(text)) == text)
define("family", "ip.() -> int")(lambda ip: ip.key.version)
define("isUnspecified", "ip.() -> bool")(lambda ip: ip.key.is_unspecified)
define("isLoopback", "ip.() -> bool")(lambda ip: ip.key.is_loopback)
define("isLinkLocalUnicast", "ip.() -> bool")(lambda ip: ip.key.is_link_local)
define("ip", "cidr.() -> ip")(lambda cidr: IP(cidr.key.ip))
define("prefixLength", "cidr.() -> int")(lambda cidr: cidr.key.network.prefixlen)
define("masked", "cidr.() -> cidr")(lambda cidr: CIDR(ip_interface(cidr.key.network)))


@define("isLinkLocalMulticast", "ip.() -> bool")
def is_link_local_multicast(ip: IP) -> bool:
    packed = ip.key.packed
    return bool(packed[:3] == b"\xe0\0\0" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2)


@define("isGlobalUnicast", "ip.() -> bool")
def is_global_unicast(ip: IP) -> bool:
    key = ip.key
    local = key.is_unspecified or key.is_loopback or key.is_multicast or key.is_link_local
    return not local and key.packed != b"\xff\xff\xff\xff"


def _containing(_cidr: CIDR, other: Any) -> float:
    return 5 + (reading(other) if isinstance(other, str) else 0)


@define("containsIP", "cidr.(ip) -> bool", "cidr.(string) -> bool", cost=_containing)
def contains_ip(cidr: CIDR, other: IP | str) -> bool:
    ip = to_ip(other) if isinstance(other, str) else other
    return ip.key in cidr.key.network


@define("containsCIDR", "cidr.(cidr) -> bool", "cidr.(string) -> bool", cost=_containing)
def contains_cidr(cidr: CIDR, other: CIDR | str) -> bool:
    inner = (to_cidr(other) if isinstance(other, str) else other).key.network
    return cidr.key.version == inner.version and bool(inner.subnet_of(cidr.key.network))
