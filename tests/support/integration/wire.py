"""Records requests as they arrive, without the values that differ from run to run."""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request
from support.integration.cluster import Application

ANY = "*"
"""Placeholder for identities, versions and times."""

_VARIES = frozenset(
    (
        "acquireTime",
        "creationTimestamp",
        "eventTime",
        "firstTimestamp",
        "holderIdentity",
        "lastTimestamp",
        "lastTransitionTime",
        "renewTime",
        "reportingInstance",
        "resourceVersion",
        "uid",
    )
)
_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EVENT_NAME = re.compile(r"\.[0-9a-f]{12,}$")


class Sent(NamedTuple):
    """A request without varying values."""

    method: str
    target: str
    content_type: str
    sender: str
    """The last part of the user agent."""
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.target} {self.content_type} {json.dumps(self.body, sort_keys=True)}"


def plain(method: str, target: str, content_type: str, user_agent: str, body: Any) -> Sent:
    """Return a request without its varying values."""
    return Sent(method, target, content_type, user_agent.rpartition("/")[2], _plain(body))


def _plain(value: Any, key: str = "") -> Any:
    if key in _VARIES:
        return ANY
    if isinstance(value, dict):
        kept = {name: _plain(item, name) for name, item in value.items() if _matters(name, value)}
        if kept.get("kind") == "Event":
            kept["metadata"]["name"] = _EVENT_NAME.sub(".N", kept["metadata"]["name"])
        return kept
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"^\S+( became leader)$", rf"{ANY}\1", _UID.sub(ANY, value))
    return value


def _matters(name: str, owner: dict[str, Any]) -> bool:
    if owner.get("kind") == "Event" and (name.startswith("deprecated") or owner[name] is None):
        return False
    if name == "annotations" and owner[name] in ({}, {_KUBECTL: owner[name].get(_KUBECTL)}):
        return False
    return name not in ("managedFields", _KUBECTL)


class Recorder:
    """Wraps an application and records every write."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self._closed = False

    def close(self) -> None:
        """Stop recording."""
        self._closed = True

    def __call__(self, application: Application) -> Application:
        def answer(request: Request, connection: Connection) -> None:
            if request.method != "GET" and not self._closed:
                query = f"?{request.raw_query.decode()}" if request.raw_query else ""
                self.sent.append(
                    plain(
                        request.method,
                        request.path + query,
                        request.header(b"content-type"),
                        request.header(b"user-agent"),
                        json.loads(request.body),
                    )
                )
            application(request, connection)

        return answer

    def about(self, name: str) -> list[Sent]:
        """Return the writes whose path names an object, and the events about it; each kind once."""
        return _distinct(sent for sent in self.sent if _names(sent) & {name})


def _names(sent: Sent) -> set[str]:
    parts = set(sent.target.partition("?")[0].split("/"))
    regarding = (sent.body or {}).get("regarding") or {}
    return parts | {regarding.get("name", "")}


def _distinct(sent: Iterable[Sent]) -> list[Sent]:
    return list({str(one): one for one in sent}.values())
