"""Keeps secrets out of what is written.

Two nets, one behind the other: a value under a telling name (`token`, `password`, `authorization`, ...) is replaced
wherever it is nested; and text is searched for what looks like credentials whatever it was called, since messages of
libraries and servers cannot be trusted.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

REDACTED = "<redacted>"

_TELLING_NAMES = frozenset(
    (
        *("token", "accesstoken", "bearertoken", "idtoken", "refreshtoken", "authorization", "proxyauthorization"),
        *("credential", "credentials", "password", "passwd", "passphrase", "cookie", "setcookie"),
        *("clientkey", "clientkeydata", "privatekey", "privatekeydata", "tlskey", "tlskeydata"),
        *("secret", "clientsecret"),
    )
)
_MARKS = ("bearer", "author", "token", "secret", "key-data", "pass", "://", "eyj", "-----")
"""Text without any of these has no credentials: most is not searched any further."""


@cache
def _credentials() -> re.Pattern[str]:
    return re.compile(
        r"(?P<scheme>\b(?:bearer|authorization\W+basic)\s+)[\w.~+/=-]{6,}"
        # In prose, `token: expired` is no secret; in code and data, `token=...` and `"token": "..."` are.
        r"|(?P<token>\b(?:access[-_]?|bearer[-_]?|id[-_]?|refresh[-_]?)?token(?:=|:|[\"']\s*:\s*[\"']?))[^\s\"',;&}]+"
        r"|(?P<field>\b(?:client[-_]?secret|client-key-data|pass(?:word|wd|phrase))[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&}]+"
        r"|(?P<url>://[^\s/:@]*:)[^\s/@]+(?=@)"
        r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        re.IGNORECASE | re.DOTALL,
    )


def hide_in_text(text: str) -> str:
    """The text without anything that looks like credentials."""
    folded = text.casefold()
    return _credentials().sub(_redacted, text) if any(mark in folded for mark in _MARKS) else text


def showable(name: str, value: Any) -> Any:
    """A value as it may be shown under this name, made of what JSON knows."""
    if name.replace("_", "").replace("-", "").lower() in _TELLING_NAMES:
        return REDACTED
    if isinstance(value, str):
        return hide_in_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): showable(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [showable("", item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return showable("", msgspec.to_builtins(value, enc_hook=_as_text))


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} cannot be shown: {error!r}>"


def _redacted(match: re.Match[str]) -> str:
    kept = match["scheme"] or match["token"] or match["field"] or match["url"] or ""
    return kept + REDACTED
