"""Removes secrets from output, in two steps.

A value under the name of a secret (`token`, `password`, `authorization`, ...) is replaced at any depth; and every text
is searched for credentials by their form, since messages of libraries and servers may contain them.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

REDACTED = "<redacted>"

_SECRET_NAMES = frozenset(
    (
        *("token", "accesstoken", "bearertoken", "idtoken", "refreshtoken", "authorization", "proxyauthorization"),
        *("credential", "credentials", "password", "passwd", "passphrase", "cookie", "setcookie"),
        *("clientkey", "clientkeydata", "privatekey", "privatekeydata", "tlskey", "tlskeydata"),
        *("secret", "clientsecret"),
    )
)
_MARKS = ("bearer", "author", "token", "secret", "key-data", "pass", "://", "eyj", "-----")
"""A text without any of these contains no credentials and is not searched; true of most."""


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


def redact_text(text: str) -> str:
    """Return the text with everything that looks like credentials replaced."""
    folded = text.casefold()
    return _credentials().sub(_redacted, text) if any(mark in folded for mark in _MARKS) else text


def redact(name: str, value: Any) -> Any:
    """Return a value without secrets, converted to JSON types; it is shown under `name`."""
    if name.replace("_", "").replace("-", "").lower() in _SECRET_NAMES:
        return REDACTED
    if isinstance(value, str):
        return redact_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): redact(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact("", item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return redact("", msgspec.to_builtins(value, enc_hook=_as_text))


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} cannot be shown: {error!r}>"


def _redacted(match: re.Match[str]) -> str:
    kept = match["scheme"] or match["token"] or match["field"] or match["url"] or ""
    return kept + REDACTED
