"""URLs, parsed like Go's net/url parses the URI of a request: absolute, or a path from the root."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library, succeeds
from kubestow.api.cel.library import strings
from kubestow.api.cel.library.costs import reading
from kubestow.api.cel.values import KubernetesValue

LIBRARY = Library()
define = LIBRARY.define

# Patterns are compiled on first use: few expressions have URLs.
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*):"
_ESCAPE = r"%(?![0-9A-Fa-f]{2})[\s\S]{0,2}"
_USER = r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*"
_HOST = r"[A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff-]*"
_PORT = r"(?::[0-9]*)?"
_PATH = "$&+,/:;=@!'()*"
_VALID_PATH = r"[A-Za-z0-9._~!$&'()*+,;=:@\[\]/%-]*"


class Parts(NamedTuple):
    """The parts of a URL; the path is not unescaped, the query includes its question mark."""

    scheme: str
    opaque: str
    """The text after the scheme if it is neither a host nor a path from the root."""
    user: str
    host: str
    path: str
    query: str
    fragment: str


class URL(KubernetesValue):
    """A URL; the key is its parts."""

    __slots__ = ()
    type_name = "kubernetes.URL"
    go_type = "cel.URL"

    @property
    def parts(self) -> Parts:
        return self.key  # type: ignore[no-any-return]


def _parse(text: str) -> Parts:
    """Parse a URL. Raises ValueError with the message of Go."""
    if any(char < " " or char == "\x7f" for char in text):
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    rest, _, fragment = text.partition("#")
    rest, mark, query = rest.partition("?")
    query = mark + query
    found = re.match(_SCHEME, rest)
    scheme = found[1].lower() if found else ""
    if found:
        rest = rest[found.end() :]
    elif rest.startswith(":"):
        raise ValueError("missing protocol scheme")
    if not rest.startswith("/"):
        if not scheme:
            raise ValueError("invalid URI for request")
        return Parts(scheme, rest, "", "", "", query, fragment)
    user = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, host = _user_and_host(authority)
        rest = slash + path
    for part in (rest, fragment):
        if escape := re.search(_ESCAPE, part):
            raise ValueError(f"invalid URL escape {strings.quote(escape[0])}")
    return Parts(scheme, "", user, host, rest, query, fragment)


def _user_and_host(authority: str) -> tuple[str, str]:
    user, at, host = authority.rpartition("@")
    if at and not re.fullmatch(_USER, user):
        raise ValueError("net/url: invalid userinfo")
    if not re.fullmatch(_HOST, host):
        raise ValueError("invalid character in host name")
    if host.startswith("["):
        if "]" not in host:
            raise ValueError("missing ']' in host")
        port = host.rpartition("]")[2]
    else:
        port = host[host.rindex(":") :] if ":" in host else ""
    if not re.fullmatch(_PORT, port):
        raise ValueError(f"invalid port {strings.quote(port)} after host")
    return user + at, host


@define("url", "(string) -> url", cost=reading)
def to_url(text: str) -> URL:
    try:
        return URL(_parse(text))
    except ValueError as error:
        problem = f"parse {strings.quote(text)}: {error}"
        raise EvaluationError(f"URL parse error during conversion from string: {problem}") from None


def _split_host(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or "]" in port:
        name, port = host, ""
    return (name[1:-1] if name.startswith("[") and name.endswith("]") else name), port


is_url = define("isURL", "(string) -> bool", cost=reading)(succeeds(to_url))
define("getScheme", "url.() -> string")(lambda url: url.parts.scheme)
define("getHost", "url.() -> string")(lambda url: url.parts.host)
define("getHostname", "url.() -> string")(lambda url: _split_host(url.parts.host)[0])
define("getPort", "url.() -> string")(lambda url: _split_host(url.parts.host)[1])


@define("getEscapedPath", "url.() -> string")
def escaped_path_of(url: URL) -> str:
    path = url.parts.path
    return path if re.fullmatch(_VALID_PATH, path) else quote(path, safe=_PATH + "%")


@define("getQuery", "url.() -> map(string, list(string))")
def query_of(url: URL) -> dict[str, list[str]]:
    query: dict[str, list[str]] = {}
    for pair in url.parts.query[1:].split("&"):
        if pair and ";" not in pair and not re.search(_ESCAPE, pair):
            key, _, value = pair.partition("=")
            query.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return query
