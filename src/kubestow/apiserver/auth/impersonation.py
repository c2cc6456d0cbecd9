"""Impersonation: the user that a request acts as, and whether its author may do that, as in kube-apiserver v1.36.

`Impersonate-...` headers name a user, and optionally its UID, groups and extra values. The modes are tried in order.
The first one that allows the request decides; if none does, the first denial is the response.

A constrained mode concerns one kind of user. The author needs `impersonate-on:MODE:VERB` for what the request does, and
`impersonate:MODE` for each named part of the user. The last mode is the original one: `impersonate` for each part is
enough. Service accounts are authorized in their namespace; all other parts at cluster scope, since they are valid
everywhere: permissions in a namespace must not grant membership of a group.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import unquote

from kubestow.apiserver import errors
from kubestow.apiserver.auth.policy import Attempt, Authorizer, denial
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from kubestow.apiserver.rules.names import dns_label, dns_subdomain
from kubestow.server.http.receiving import COMMON_HEADERS

PREFIX = b"impersonate-"
_EXTRA = PREFIX + b"extra-"
_GROUP = "authentication.k8s.io"
_ACCOUNT, _NODE = "system:serviceaccount:", "system:node:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_MANY = 4
"""Number of groups or extra values from which a permission for all of them is tried first."""


class Impersonation(NamedTuple):
    """The author of a request and the user that it acts as."""

    author: User
    user: User
    constraint: str
    """The verb that allowed it; empty for the original verb."""


def keeps_header(name: bytes) -> bool:
    """Return whether the server needs a header, whose name is in lower case."""
    return name in COMMON_HEADERS or name.startswith(PREFIX)


def resolve(
    headers: Mapping[bytes, bytes], author: User, attempt: Attempt, authorizer: Authorizer
) -> Impersonation | None:
    """Return the user that a request impersonates to make an attempt; None if it impersonates none.

    Raises ApiError if the headers are incomplete, or if the author may not impersonate that user.
    """
    wanted = _wanted(headers)
    if wanted is None:
        return None
    first_denial: ApiError | None = None
    for mode in _MODES:
        if mode.applies(wanted, author):
            try:
                return _Check(mode, author, wanted, authorizer).run(attempt)
            except ApiError as error:
                first_denial = first_denial or error
    assert first_denial is not None, "the last mode applies to every user"
    raise first_denial


def _wanted(headers: Mapping[bytes, bytes]) -> User | None:
    """Return the user that headers describe."""
    given = {key: value.split(b"\n") for key, value in headers.items() if key.startswith(PREFIX)}
    if not given:
        return None
    texts = {key: tuple(value.decode(errors="replace") for value in values) for key, values in given.items()}
    name, uid = (texts.get(PREFIX + key, ("",))[0] for key in (b"user", b"uid"))
    groups = texts.get(PREFIX + b"group", ())
    extra = {_extra_key(key[len(_EXTRA) :]): values for key, values in texts.items() if key.startswith(_EXTRA)}
    if name:
        return User(name, groups, uid, extra)
    parts = [part for part, value in (("a UID", uid), ("groups", groups), ("extra values", extra)) if value]
    if parts:
        raise errors.bad_request(f"requested impersonation of {', '.join(parts)} without impersonating a user name")
    return None


def _extra_key(encoded: bytes) -> str:
    text = encoded.decode("latin-1")
    return text if re.search("%(?![0-9a-f]{2})", text) else unquote(text, errors="replace")


def service_account(username: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account with a user name, if it is one."""
    namespace, colon, name = username.removeprefix(_ACCOUNT).partition(":")
    valid = username.startswith(_ACCOUNT) and colon and not dns_label(namespace) and not dns_subdomain(name)
    return (namespace, name) if valid else None


def _node(username: str) -> str:
    """Return the name of the node with a user name; empty if it is none."""
    name = username.removeprefix(_NODE)
    return name if username.startswith(_NODE) and not dns_subdomain(name) else ""


def _is_name_only(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _is_of_author(wanted: User, author: User) -> bool:
    """Return whether a wanted user is the node on which the author, a pod's service account, runs."""
    name = _node(wanted.name)
    is_account = service_account(author.name) is not None
    return bool(name) and is_account and tuple(author.extra.get(_NODE_NAME, ())) == (name,)


@dataclass(frozen=True, slots=True)
class _Mode:
    """A mode of impersonation; the original one has no name."""

    name: str
    applies: Callable[[User, User], bool]
    """Return whether it concerns a wanted user, given the author."""


_MODES = (
    _Mode("associated-node", lambda wanted, author: _is_name_only(wanted) and _is_of_author(wanted, author)),
    _Mode("arbitrary-node", lambda wanted, _: _is_name_only(wanted) and bool(_node(wanted.name))),
    _Mode("serviceaccount", lambda wanted, _: _is_name_only(wanted) and service_account(wanted.name) is not None),
    _Mode("user-info", lambda wanted, _: not _node(wanted.name) and service_account(wanted.name) is None),
    _Mode("", lambda _wanted, _author: True),
)


@dataclass(frozen=True, slots=True)
class _Check:
    """The authorization of one request by one mode; its methods raise ApiError for a denial."""

    mode: _Mode
    author: User
    wanted: User
    authorizer: Authorizer

    def run(self, attempt: Attempt) -> Impersonation:
        """Return the impersonated user with all groups."""
        mode, wanted = self.mode.name, self.wanted
        if mode:
            self._require(replace(attempt, verb=f"impersonate-on:{mode}:{attempt.verb}"))
        groups = self._name()
        if wanted.uid:
            self._require(self._part("uids", wanted.uid, _GROUP))
        self._groups()
        self._extra()
        if wanted.name == ANONYMOUS.name:
            groups = _with(groups, UNAUTHENTICATED)
        elif UNAUTHENTICATED not in groups:
            groups = _with(groups, AUTHENTICATED)
        return Impersonation(self.author, replace(wanted, groups=groups), self._verb if mode else "")

    @property
    def _verb(self) -> str:
        return f"impersonate:{self.mode.name}" if self.mode.name else "impersonate"

    def _part(self, resource: str, name: str, group: str | None = None) -> Attempt:
        """Return the attempt to impersonate a part of a user, at cluster scope."""
        if group is None:
            group = _GROUP if self.mode.name else ""
        return Attempt(self._verb, resource, group=group, name=name)

    def _allowed(self, attempt: Attempt) -> bool:
        return self.authorizer.allowed(self.author, attempt)

    def _require(self, attempt: Attempt, why: str = "") -> None:
        if why or not self._allowed(attempt):
            raise denial(self.author, attempt, why)

    def _name(self) -> tuple[str, ...]:
        """Authorize the user name; return the groups of the user."""
        wanted, account, node = self.wanted, service_account(self.wanted.name), _node(self.wanted.name)
        if account is not None:
            self._require(replace(self._part("serviceaccounts", account[1]), namespace=account[0]))
            return wanted.groups or ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
        if node and self.mode.name:
            # A permission for the own node must not depend on its name, since pods of all nodes share it.
            self._require(self._part("nodes", "*" if self.mode.name == "associated-node" else node))
            return ("system:nodes",)
        self._require(self._part("users", wanted.name))
        return wanted.groups

    def _groups(self) -> None:
        groups = self.wanted.groups
        if self.mode.name:
            if "" in groups:
                self._require(self._part("groups", ""), "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                self._require(self._part("groups", MASTERS), f"impersonating the {MASTERS} group is not allowed")
            if len(groups) >= _MANY and self._allowed(self._part("groups", "*")):
                return
        for group in groups:
            self._require(self._part("groups", group))

    def _extra(self) -> None:
        pairs = [(key, value) for key, values in self.wanted.extra.items() for value in values]
        if self.mode.name:
            for why in _invalid_extra(self.wanted.extra):
                self._require(self._part("userextras", "", _GROUP), why)
            if len(pairs) >= _MANY and self._allowed(self._part("userextras/*", "*", _GROUP)):
                return
        for key, value in pairs:
            self._require(self._part(f"userextras/{key}", value, _GROUP))


def _invalid_extra(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key, values in extra.items():
        prefix, slash, path = key.partition("/")
        if not slash or not path or dns_subdomain(prefix) or not re.fullmatch(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", path):
            yield f"impersonating an invalid key in extra is not allowed: {key!r} must be a domain-prefixed path"
        if key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {key!r}"
        if "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _with(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)
