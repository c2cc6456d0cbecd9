"""Authentication: users by client certificate or bearer token.

Tokens are random strings kept in memory: the administrator's, those of a token file, and those issued for service
accounts, which expire.
"""

import csv
import secrets
import time
from pathlib import Path
from typing import Any

from kubestow.apiserver.objects.intent import AUTHENTICATED, User


class TokenFileError(ValueError):
    """A token file that cannot be read; the message names file and line."""


class Identities:
    """The users that the server can authenticate."""

    def __init__(self, admin_token: str) -> None:
        self._tokens: dict[bytes, tuple[User, float]] = {}
        self.add_token(admin_token, User("kubernetes-admin", ("system:masters",)))

    def add_token(self, token: str, user: User, lifetime: float = float("inf")) -> None:
        """Add a token that authenticates a user; `lifetime` is in seconds."""
        known = User(user.name, (*user.groups, AUTHENTICATED), user.uid)
        self._tokens[token.encode()] = (known, time.time() + lifetime)

    def add_file(self, path: Path) -> None:
        """Read a token file: lines of token,user,uid[,"group1,group2"]; raises TokenFileError."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise TokenFileError(f"cannot read token file {path}: {error.strerror}") from error
        for number, row in enumerate(csv.reader(text.splitlines()), 1):
            if not row:
                continue
            if len(row) < 3 or not row[0] or not row[1]:
                raise TokenFileError(f'{path}:{number}: expected token,user,uid[,"group1,group2"]')
            groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 else ()
            self.add_token(row[0], User(row[1], groups, row[2]))

    def issue(self, namespace: str, name: str, uid: str, lifetime: float) -> str:
        """Return a new token for a service account; `lifetime` is in seconds."""
        token = f"kubestow.{secrets.token_urlsafe(32)}"
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        self.add_token(token, User(f"system:serviceaccount:{namespace}:{name}", groups, uid), lifetime)
        return token

    def by_token(self, token: bytes) -> User | None:
        """Return the user of a token; None if it is unknown or has expired."""
        entry = self._tokens.get(token)
        if entry is None:
            return None
        user, until = entry
        if time.time() > until:
            del self._tokens[token]
            return None
        return user


def bearer_token(header: bytes) -> bytes:
    """Return the token of an Authorization header; empty if it has none, as with another scheme."""
    scheme, _, rest = header.strip().partition(b" ")
    return rest.partition(b" ")[0] if scheme.lower() == b"bearer" else b""


def by_certificate(certificate: dict[str, Any] | None) -> User | None:
    """Return the user of a client certificate, which the TLS handshake has verified."""
    if not certificate:
        return None
    name = ""
    groups = []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None
