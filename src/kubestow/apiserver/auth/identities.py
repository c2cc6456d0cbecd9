"""Authentication: users by client certificate or bearer token.

Tokens are random strings kept in memory: the administrator's, those of a token file, and those issued for service
accounts. An issued token is valid for its audiences, until it expires or an object is gone to which it is bound: the
service account, and the pod, secret or node that its request named. An object of the same name is another one.
"""

import csv
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.errors import unauthorized
from kubestow.apiserver.objects.intent import AUTHENTICATED, User
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store

API_AUDIENCES = ("https://kubernetes.default.svc.cluster.local",)
"""The audiences of this server."""
_DELETION_LEEWAY = 60.0
"""Seconds after the deletion timestamp of an object for which tokens bound to it are valid."""
_PRUNED_FROM = 1_000


class TokenFileError(ValueError):
    """A token file that cannot be read; the message names file and line."""


class Authenticated(NamedTuple):
    """The user of a token, and the requested audiences for which the token is valid."""

    user: User
    audiences: tuple[str, ...]


class _Bound(NamedTuple):
    storage: str
    namespace: str
    name: str
    uid: str


class _Token(NamedTuple):
    user: User
    until: float
    audiences: tuple[str, ...]
    bound_to: tuple[_Bound, ...]


class Identities:
    """The users that the server can authenticate."""

    def __init__(self, admin_token: str, store: Store) -> None:
        self._store = store
        self._tokens: dict[bytes, _Token] = {}
        self._permanent: dict[bytes, User] = {}
        """The users of tokens that never become invalid, by Authorization header."""
        self._prune_at = _PRUNED_FROM
        self._add(admin_token, User("kubernetes-admin", ("system:masters",)))

    def _add(
        self,
        token: str,
        user: User,
        until: float = float("inf"),
        audiences: tuple[str, ...] = API_AUDIENCES,
        bound_to: tuple[_Bound, ...] = (),
    ) -> None:
        known = User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)
        self._tokens[token.encode()] = _Token(known, until, audiences, bound_to)
        if not bound_to:
            self._permanent[b"Bearer " + token.encode()] = known

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
            self._add(row[0], User(row[1], groups, row[2]))

    def issue(
        self,
        account: Record,
        lifetime: float,
        audiences: tuple[str, ...],
        bound_to: Record | None,
        extra: Mapping[str, tuple[str, ...]],
    ) -> str:
        """Return a new token for a service account, bound to it and to another object, if any.

        `lifetime` is in seconds; `extra` are the extra values of the user.
        """
        if len(self._tokens) >= self._prune_at:
            self._tokens = {token: entry for token, entry in self._tokens.items() if self._is_valid(entry)}
            self._prune_at = max(_PRUNED_FROM, 2 * len(self._tokens))
        token = f"kubestow.{secrets.token_urlsafe(32)}"
        namespace = account.namespace
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        user = User(f"system:serviceaccount:{namespace}:{account.name}", groups, account.uid, extra)
        records = (account,) if bound_to is None else (account, bound_to)
        bound = tuple(_Bound(one.storage, one.namespace, one.name, one.uid) for one in records)
        self._add(token, user, self._store.clock.now() + lifetime, audiences, bound)
        return token

    def by_header(self, header: bytes) -> User | None:
        """Return the user of an Authorization header; None if it has no token. Raises ApiError for an invalid token."""
        user = self._permanent.get(header)
        if user is None and (token := _bearer_token(header)):
            found = self.by_token(token)
            if found is None:
                raise unauthorized()
            user = found.user
        return user

    def by_token(self, token: bytes, audiences: Collection[str] = API_AUDIENCES) -> Authenticated | None:
        """Return the user of a token; None if it is not valid, or for none of the audiences."""
        entry = self._tokens.get(token)
        if entry is None or not self._is_valid(entry):
            return None
        accepted = tuple(one for one in entry.audiences if one in audiences)
        return Authenticated(entry.user, accepted) if accepted else None

    def _is_valid(self, token: _Token) -> bool:
        now = self._store.clock.now()
        return now <= token.until and all(self._exists(one, now) for one in token.bound_to)

    def _exists(self, bound: _Bound, now: float) -> bool:
        current = self._store.get(bound.storage, bound.namespace, bound.name)
        if current is None or current.uid != bound.uid:
            return False
        if b'"deletionTimestamp"' not in current.body:
            return True
        deleted = current.object()["metadata"].get("deletionTimestamp")
        return deleted is None or parse_time(deleted) >= now - _DELETION_LEEWAY


def _bearer_token(header: bytes) -> bytes:
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
