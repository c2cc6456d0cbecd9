"""/debug/decisions: lists of decisions, decisions by pod or pod group, and a stream of server-sent events."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.groups import GroupRecord
from kubestow.insight.decisions.reading import Query, parse_group_query, parse_query, read, read_groups
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.schema import Decision, DecisionList, GroupDecision, GroupDecisionList
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError, bad_request
from kubestow.server.http.messages import Request, Response, chunk
from kubestow.server.pages import DECISIONS, Stream
from kubestow.server.serving import SAFE

GROUPS = "podgroups"
MAX_FOLLOWERS = 16
_WATCH = "watch"
_EVENTS = b"text/event-stream"
_GROUP_PATH_PARTS = 3
"""Number of parts of podgroups/NAMESPACE/NAME."""

Listed = DecisionList | GroupDecisionList
AnyRecord = TypeVar("AnyRecord", bound=Record | GroupRecord)


class DecisionPages:
    """Serves the decisions of an archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        recorder, details = archive.recorder, archive.details()
        self._details = details
        # Without details about nodes, which are too large for thousands of decisions per second.
        self._pods = _Readers[Record](recorder.listeners, lambda record: archive.decision(record, nodes=False))
        self._groups = _Readers[GroupRecord](recorder.groups.listeners, lambda record: record.decision)

    def answer(self, request: Request) -> Response | Stream:
        """Return the list, or the decisions about one pod or group, or a stream. Raises ApiError."""
        parts = [part for part in request.path.removeprefix(DECISIONS).split("/") if part]
        watch = request.query.get(_WATCH, "false")
        try:
            if watch not in ("true", "false"):
                raise ValueError(f"{_WATCH}: must be true or false, not {watch!r}")
            return self._answer(request, parts, is_watch=watch == "true")
        except ValueError as error:
            raise bad_request(str(error)) from None

    def _answer(self, request: Request, parts: list[str], *, is_watch: bool) -> Response | Stream:
        if parts[:1] == [GROUPS] and len(parts) in (1, _GROUP_PATH_PARTS):
            groups, group = parse_group_query(request.query, ignored=(_WATCH,)), Query()
            if parts[1:]:
                groups = groups._replace(namespace=parts[1], pod=parts[2])
                group = Query(parts[1], parts[2], limit=1)
            if is_watch:
                return self._groups.follow(groups.matches_group)
            archive = self._archive
            return _listed(read_groups(archive, groups), lambda: read_groups(archive, group), "pod group", parts[1:])
        if len(parts) not in (0, 2):
            known = f"{DECISIONS}/NAMESPACE/POD or {DECISIONS}/{GROUPS}/NAMESPACE/NAME"
            raise ApiError(404, "NotFound", f"there is no page {request.path}; use {known}")
        pods, pod = parse_query(request.query, nodes=bool(parts), ignored=(_WATCH,)), Query()
        if parts:
            pods = pods._replace(namespace=parts[0], pod=parts[1])
            pod = Query(parts[0], parts[1], limit=1)
        if is_watch:
            return self._pods.follow(lambda record: pods.matches(record, self._details))
        return _listed(read(self._archive, pods), lambda: read(self._archive, pod), "pod", parts)


def _listed(found: Listed, recorded: Callable[[], Listed], kind: str, name: list[str]) -> Response:
    """Return the decisions found; raises ApiError if a pod or group is named of which no decision is `recorded`."""
    if name and not found.items and not recorded().items:
        message = f"no decision about {kind} {'/'.join(name)} is recorded: it was not attempted, or too long ago"
        raise ApiError(404, "NotFound", message)
    return Response(200, msgspec.json.encode(found))


class _Readers(Generic[AnyRecord]):
    """The clients that follow new decisions, each with its query."""

    def __init__(
        self, listeners: list[Callable[[AnyRecord], None]], decision_of: Callable[[AnyRecord], Decision | GroupDecision]
    ) -> None:
        self._listeners = listeners
        self._decision_of = decision_of
        self._matching: dict[Connection, Callable[[AnyRecord], bool]] = {}

    def follow(self, matches: Callable[[AnyRecord], bool]) -> Stream:
        if len(self._matching) >= MAX_FOLLOWERS:
            raise ApiError(429, "TooManyRequests", f"{MAX_FOLLOWERS} clients follow decisions, which is the limit")

        def begin(connection: Connection) -> None:
            if not self._matching:
                self._listeners.append(self._notify)
            self._matching[connection] = matches
            connection.open_stream(_EVENTS, lambda: self._on_closed(connection), headers=SAFE)

        return begin

    def _on_closed(self, connection: Connection) -> None:
        self._matching.pop(connection, None)
        if not self._matching and self._notify in self._listeners:
            self._listeners.remove(self._notify)

    def _notify(self, record: AnyRecord) -> None:
        line = b""
        for connection, matches in list(self._matching.items()):
            if matches(record):
                line = line or event(msgspec.json.encode(self._decision_of(record)), record.id)
                connection.write(line)


def event(data: bytes, number: int) -> bytes:
    """Return a server-sent event as a chunk."""
    return chunk(b"id: %d\nevent: decision\ndata: %b\n\n" % (number, data))
