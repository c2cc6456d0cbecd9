"""The paths below /ui/api/v1: GETs that are answered at once, dry runs that take a while, and the stream."""

import math
from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from typing import Any

import msgspec

from kubestow import __version__
from kubestow.insight.decisions.reading import Query, parse_query
from kubestow.insight.page import comparing, tables
from kubestow.insight.page.decisions import read, told_with_nodes
from kubestow.insight.page.events import Events
from kubestow.insight.page.history import State
from kubestow.insight.page.run import Run
from kubestow.insight.page.trying import MOST_COMPARED, Bench
from kubestow.server.http.errors import ApiError, bad_request
from kubestow.server.http.messages import Request, Response
from kubestow.server.pages import Answer, Stream

PATH = "/ui/api/v1"
TRY, COMPARE = f"{PATH}/try", f"{PATH}/compare"
_ATTEMPTS = 100
_POINTS = 600
_COMPARED = 50

Found = dict[str, Any] | msgspec.Struct | Coroutine[Any, Any, dict[str, Any]] | Stream


class Api:
    """Answers requests about one run, or two to compare."""

    def __init__(self, runs: Sequence[Run], events: Events | None = None) -> None:
        """`events` is the stream of a run that is not over."""
        self._runs = runs
        self._events = events
        self._pages: dict[str, Callable[[Asked], Found]] = {
            "": self._about,
            "cluster": lambda asked: asked.run.cluster.of(asked.state),
            "nodes": self._node,
            "queue": self._queue,
            "decisions": self._decisions,
            "explain": self._explain,
            "groups": self._groups,
            "times": self._times,
            "compare": self._compare,
            "configuration": lambda asked: asked.run.configuration(),
            "search": self._search,
            "events": self._follow,
        }

    def answer(self, request: Request) -> Answer:
        """Answer a GET; raises ApiError."""
        kind, *rest = _parts(request)
        page = self._pages.get(kind)
        if page is None:
            raise ApiError(
                404, "NotFound", f"there is no page {request.path}; below {PATH} are {', '.join(self._pages)}"
            )
        return _told(page(Asked(request, self._runs, rest)))

    def post(self, request: Request) -> Answer:
        """Answer one of the two POSTs, which create nothing; raises ApiError."""
        asked = Asked(request, self._runs, [])
        bench = asked.bench
        try:
            text = request.body.decode()
        except UnicodeDecodeError:
            raise bad_request("the body is not UTF-8") from None
        if not text.strip():
            raise bad_request("there is nothing in the body")
        if request.path == TRY:
            return _told(bench.try_pods(text, asked.given("namespace") or "default"))
        return _told(bench.compare(text, int(asked.number("pods", _COMPARED, 1, MOST_COMPARED))))

    # Pages

    def _about(self, asked: "Asked") -> Found:
        run, history = asked.run, asked.run.history
        can = run.bench is not None
        return {
            "version": 1,
            "kubestow": __version__,
            "name": run.name,
            "live": self._events is not None,
            "time": history.now.last.time,
            "moment": history.now.last.number,
            "from": history.begin,
            "to": history.end,
            "runs": [one.name for one in self._runs],
            "profiles": [profile["name"] for profile in run.configuration()["profiles"]],
            "can": {"explain": can, "try": can, "compare": can or len(self._runs) == 2},
            "cannot": "" if can else run.cannot_try,
        }

    def _node(self, asked: "Asked") -> Found:
        (name,) = asked.names("nodes/NAME", 1)
        found = tables.node(asked.state, name)
        if found is None:
            raise ApiError(404, "NotFound", f"there is no node {name}")
        return found | {"refusals": asked.run.decisions.refusals(name, math.inf if asked.at is None else asked.at)}

    def _queue(self, asked: "Asked") -> Found:
        if not asked.rest:
            return tables.queue(asked.state)
        (uid,) = asked.names("queue/UID", 1)
        found = asked.state.waiting.get(uid)
        if found is None:
            raise ApiError(404, "NotFound", f"no pod {uid} is in the queue")
        told = tables.rows_of([found])
        (row,) = told.pop("rows")
        return told | {"time": asked.state.last.time, "row": row, "history": asked.run.moves(uid)}

    def _decisions(self, asked: "Asked") -> Found:
        decisions, until = asked.run.decisions, math.inf if asked.at is None else asked.at
        if not asked.rest:
            try:
                query = parse_query(asked.query, beside=("run", "at"))
            except ValueError as error:
                raise bad_request(str(error)) from None
            return read(decisions, query._replace(until=min(query.until, until)))
        namespace, name = asked.names("decisions/NAMESPACE/POD", 2)
        attempts = list(islice(decisions.find(Query(namespace=namespace, pod=name, until=until)), _ATTEMPTS))
        number = asked.given("id")
        chosen = next((one for one in attempts if number in ("", str(one.id))), None)
        if chosen is None:
            what = f"attempt {number} of pod" if number else "pod"
            raise ApiError(404, "NotFound", f"nothing is known about {what} {namespace}/{name}")
        told = told_with_nodes(decisions.decision(chosen))
        return told | {"attempts": [attempt.told() for attempt in reversed(attempts)]}

    def _explain(self, asked: "Asked") -> Found:
        namespace, name = asked.names("explain/NAMESPACE/POD", 2)
        return asked.bench.explain(namespace, name, asked.given("against"))

    def _groups(self, asked: "Asked") -> Found:
        if not asked.rest:
            return tables.groups(asked.state)
        namespace, name = asked.names("groups/NAMESPACE/NAME", 2)
        return asked.bench.explain_group(namespace, name)

    def _times(self, asked: "Asked") -> Found:
        begin, end = asked.number("from", 0.0), asked.number("to", math.inf)
        return asked.run.history.points(begin, end, int(asked.number("points", _POINTS, 1)))

    def _compare(self, asked: "Asked") -> Found:
        if len(self._runs) != 2:
            raise ApiError(404, "NotFound", "there is one run here; kubestow view A B has two")
        del asked
        return comparing.told_of_runs(*self._runs)

    def _search(self, asked: "Asked") -> Found:
        text = asked.given("q").strip()
        if not text:
            raise bad_request("q: say what to look for")
        points = [profile["points"] for profile in asked.run.configuration()["profiles"]]
        plugins = {one["name"] for of_profile in points for at_point in of_profile.values() for one in at_point}
        return tables.search(asked.state, text, plugins)

    def _follow(self, asked: "Asked") -> Found:
        if self._events is None:
            raise ApiError(404, "NotFound", "this run is over: nothing more will happen")
        about = self._about(asked)
        since = asked.given("since")
        return self._events.follow(int(asked.number("since", 0)) if since else None, msgspec.json.encode(about))


class Asked:
    """A request, and the meaning of its parameters."""

    def __init__(self, request: Request, runs: Sequence[Run], rest: list[str]) -> None:
        self.query = request.query
        self.rest = rest
        number = int(self.number("run", 0, 0, len(runs) - 1))
        self.run = runs[number]
        self.at = self.number("at", 0.0) if self.given("at") else None

    def given(self, name: str) -> str:
        return self.query.get(name, "")

    def number(self, name: str, default: float, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a parameter; raises ApiError if it is no number, or out of range."""
        text = self.given(name)
        if not text:
            return default
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or not low <= found <= high:
            allowed = f" from {low:g} to {high:g}" if math.isfinite(low) and math.isfinite(high) else ""
            raise bad_request(f"{name}: must be a number{allowed}, not {text[:40]!r}")
        return found

    def names(self, form: str, count: int) -> list[str]:
        """Return the parts of the path; raises ApiError unless there are `count`."""
        if len(self.rest) != count or not all(self.rest):
            raise ApiError(404, "NotFound", f"there is no such page; it is {PATH}/{form}")
        return self.rest

    @property
    def state(self) -> State:
        """Return the state now or at the time that was asked for; raises ApiError."""
        history = self.run.history
        found = history.now if self.at is None else history.at(self.at)
        if found is None:
            raise ApiError(404, "NotFound", f"at: nothing is known of times before {history.begin}")
        return found

    @property
    def bench(self) -> Bench:
        """Return where pods are tried; raises ApiError if there is no such place."""
        if self.run.bench is None:
            raise ApiError(404, "NotFound", f"no pod can be tried here: {self.run.cannot_try}")
        return self.run.bench


def _told(found: Found) -> Answer:
    if isinstance(found, Coroutine):
        return _later(found)
    return found if callable(found) else Response(200, msgspec.json.encode(found))


async def _later(found: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    return Response(200, msgspec.json.encode(await found))


def _parts(request: Request) -> list[str]:
    """Return the parts of the path below the API's own."""
    return request.path.removeprefix(PATH).strip("/").split("/")
