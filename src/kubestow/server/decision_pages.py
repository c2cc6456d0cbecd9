"""/debug/decisions: what was decided and why, as lists, by pod, and as a stream of server-sent events."""

import msgspec

from kubestow.decisions.reading import Query, parse_query, read
from kubestow.decisions.record import Record
from kubestow.decisions.recorder import Recorder
from kubestow.decisions.telling import tell
from kubestow.http.connection import Connection
from kubestow.http.errors import ApiError, bad_request
from kubestow.http.messages import Request, Response, chunk
from kubestow.server.pages import Stream

PATH = "/debug/decisions"
MOST_FOLLOWERS = 16
_EVENTS = b"text/event-stream"


class DecisionPages:
    """The pages about a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._followers: dict[Connection, Query] = {}

    def answer(self, request: Request) -> Response | Stream:
        """The list, or the decisions about one pod, or a stream; raises ApiError."""
        rest = request.path.removeprefix(PATH).strip("/")
        parameters = dict(request.query)
        is_watch = parameters.pop("watch", "false") == "true"
        try:
            query = parse_query(parameters)
        except ValueError as error:
            raise bad_request(str(error)) from None
        if rest:
            namespace, _, pod = rest.partition("/")
            if not pod or "/" in pod:
                raise ApiError(404, "NotFound", f"there is no page {request.path}; it is {PATH}/NAMESPACE/POD")
            query = query._replace(namespace=namespace, pod=pod, nodes=parameters.get("nodes") != "false")
        if is_watch:
            return self._follow(query)
        found = read(self._recorder, query)
        if rest and not found.items:
            raise ApiError(404, "NotFound", f"nothing is known about a pod {rest}: it was not tried, or too long ago")
        return Response(200, msgspec.json.encode(found))

    def _follow(self, query: Query) -> Stream:
        if len(self._followers) >= MOST_FOLLOWERS:
            raise ApiError(429, "TooManyRequests", f"{MOST_FOLLOWERS} clients follow decisions, which is the limit")

        def begin(connection: Connection) -> None:
            if not self._followers:
                self._recorder.listeners.append(self._tell)
            self._followers[connection] = query
            connection.open_stream(_EVENTS, lambda: self._lost(connection))

        return begin

    def _lost(self, connection: Connection) -> None:
        self._followers.pop(connection, None)
        if not self._followers and self._tell in self._recorder.listeners:
            self._recorder.listeners.remove(self._tell)

    def _tell(self, record: Record) -> None:
        line = b""
        for connection, query in list(self._followers.items()):
            if query.matches(record):
                # Without what is said of nodes: of thousands of decisions a second, that would be too much to say.
                line = line or event(msgspec.json.encode(tell(record, self._recorder, nodes=False)), record.id)
                connection.write(line)


def event(data: bytes, number: int) -> bytes:
    """A server-sent event, as a chunk."""
    return chunk(b"id: %d\nevent: decision\ndata: %b\n\n" % (number, data))
