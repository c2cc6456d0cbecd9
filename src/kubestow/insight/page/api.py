"""The API below /ui/api/v1: GETs that are answered immediately, dry runs, and the stream of events."""

import math
from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from typing import Any

import msgspec

from kubestow import __version__
from kubestow.insight.decisions.reading import Query, parse_query
from kubestow.insight.page import comparing, tables
from kubestow.insight.page.decisions import read, with_matrix
from kubestow.insight.page.events import Events
from kubestow.insight.page.history import State
from kubestow.insight.page.run import Run
from kubestow.insight.page.trying import MOST_COMPARED, DryRuns
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
        """`events` is the stream of a run that is still active."""
        self._runs = runs
        self._events = events
        self._pages: dict[str, Callable[[Parameters], Found]] = {
            "": self._about,
            "cluster": lambda parameters: parameters.run.cluster.of(parameters.state),
            "nodes": self._node,
            "queue": self._queue,
            "decisions": self._decisions,
            "explain": self._explain,
            "pending": lambda parameters: parameters.bench.pending(
                parameters.given("namespace"), parameters.given("owner")
            ),
            "groups": self._groups,
            "times": self._times,
            "compare": self._compare,
            "configuration": lambda parameters: parameters.run.configuration(),
            "search": self._search,
            "events": self._follow,
        }

    def answer(self, request: Request) -> Answer:
        """Answer a GET. Raises ApiError."""
        kind, *rest = _parts(request)
        page = self._pages.get(kind)
        if page is None:
            raise ApiError(
                404, "NotFound", f"there is no page {request.path}; below {PATH} are {', '.join(self._pages)}"
            )
        return _answer(page(Parameters(request, self._runs, rest)))

    def post(self, request: Request) -> Answer:
        """Answer one of the two POSTs, which create nothing. Raises ApiError."""
        parameters = Parameters(request, self._runs, [])
        bench = parameters.bench
        try:
            text = request.body.decode()
        except UnicodeDecodeError:
            raise bad_request("the body is not UTF-8") from None
        if not text.strip():
            raise bad_request("the body is empty")
        if request.path == TRY:
            return _answer(bench.try_pods(text, parameters.given("namespace") or "default"))
        return _answer(bench.compare(text, int(parameters.number("pods", _COMPARED, 1, MOST_COMPARED))))

    # Pages

    def _about(self, parameters: "Parameters") -> Found:
        run, history = parameters.run, parameters.run.history
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
            "cannot": "" if can else run.no_dry_runs_reason,
        }

    def _node(self, parameters: "Parameters") -> Found:
        (name,) = parameters.names("nodes/NAME", 1)
        found = tables.node(parameters.state, name)
        if found is None:
            raise ApiError(404, "NotFound", f"there is no node {name}")
        return found | {"refusals": parameters.run.decisions.refusals(name, parameters.until)}

    def _queue(self, parameters: "Parameters") -> Found:
        if not parameters.rest:
            return tables.queue(parameters.state)
        (uid,) = parameters.names("queue/UID", 1)
        found = parameters.state.waiting.get(uid)
        if found is None:
            raise ApiError(404, "NotFound", f"no pod {uid} is in the queue")
        table = tables.rows_of([found])
        (row,) = table.pop("rows")
        return table | {"time": parameters.state.last.time, "row": row, "history": parameters.run.moves(uid)}

    def _decisions(self, parameters: "Parameters") -> Found:
        decisions, until = parameters.run.decisions, parameters.until
        if not parameters.rest:
            try:
                query = parse_query(parameters.query, ignored=("run", "at"))
            except ValueError as error:
                raise bad_request(str(error)) from None
            return read(decisions, query._replace(until=min(query.until, until)))
        namespace, name = parameters.names("decisions/NAMESPACE/POD", 2)
        attempts = list(islice(decisions.find(Query(namespace=namespace, pod=name, until=until)), _ATTEMPTS))
        number = parameters.given("id")
        chosen = next((one for one in attempts if number in ("", str(one.id))), None)
        if chosen is None:
            what = f"attempt {number} of pod" if number else "pod"
            raise ApiError(404, "NotFound", f"no decision about {what} {namespace}/{name} is recorded")
        attempt_list = [attempt.summary() for attempt in reversed(attempts)]
        return with_matrix(decisions.decision(chosen)) | {"attempts": attempt_list}

    def _explain(self, parameters: "Parameters") -> Found:
        namespace, name = parameters.names("explain/NAMESPACE/POD", 2)
        return parameters.bench.explain(namespace, name, parameters.given("against"))

    def _groups(self, parameters: "Parameters") -> Found:
        if not parameters.rest:
            return tables.groups(parameters.state)
        namespace, name = parameters.names("groups/NAMESPACE/NAME", 2)
        return parameters.bench.explain_group(namespace, name)

    def _times(self, parameters: "Parameters") -> Found:
        begin, end = parameters.number("from", 0.0), parameters.number("to", math.inf)
        return parameters.run.history.points(begin, end, int(parameters.number("points", _POINTS, 1)))

    def _compare(self, parameters: "Parameters") -> Found:
        if len(self._runs) != 2:
            raise ApiError(404, "NotFound", "only one run is loaded; kubestow view A B compares two")
        del parameters
        return comparing.compare_runs(*self._runs)

    def _search(self, parameters: "Parameters") -> Found:
        text = parameters.given("q").strip()
        if not text:
            raise bad_request("q: must not be empty")
        points = [profile["points"] for profile in parameters.run.configuration()["profiles"]]
        plugins = {one["name"] for of_profile in points for at_point in of_profile.values() for one in at_point}
        return tables.search(parameters.state, text, plugins)

    def _follow(self, parameters: "Parameters") -> Found:
        if self._events is None:
            raise ApiError(404, "NotFound", "this run is finished: there are no more events")
        about = self._about(parameters)
        since = parameters.given("since")
        return self._events.follow(int(parameters.number("since", 0)) if since else None, msgspec.json.encode(about))


class Parameters:
    """The path and query parameters of a request."""

    def __init__(self, request: Request, runs: Sequence[Run], rest: list[str]) -> None:
        self.query = request.query
        self.rest = rest
        number = int(self.number("run", 0, 0, len(runs) - 1))
        self.run = runs[number]
        self.at = self.number("at", 0.0) if self.given("at") else None
        self.until = math.inf if self.at is None else self.at

    def given(self, name: str) -> str:
        return self.query.get(name, "")

    def number(self, name: str, default: float, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a parameter. Raises ApiError if it is not a number, or out of range."""
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
        """Return the parts of the path. Raises ApiError unless there are `count`."""
        if len(self.rest) != count or not all(self.rest):
            raise ApiError(404, "NotFound", f"there is no such page; use {PATH}/{form}")
        return self.rest

    @property
    def state(self) -> State:
        """The state now, or at the requested time. Raises ApiError if that is too long ago."""
        history = self.run.history
        found = history.now if self.at is None else history.at(self.at)
        if found is None:
            raise ApiError(404, "NotFound", f"at: there is no history before {history.begin}")
        return found

    @property
    def bench(self) -> DryRuns:
        """The dry runs of the run. Raises ApiError if they are not possible."""
        if self.run.bench is None:
            raise ApiError(404, "NotFound", f"dry runs are not possible: {self.run.no_dry_runs_reason}")
        return self.run.bench


def _answer(found: Found) -> Answer:
    if isinstance(found, Coroutine):
        return _awaited(found)
    return found if callable(found) else Response(200, msgspec.json.encode(found))


async def _awaited(found: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    return Response(200, msgspec.json.encode(await found))


def _parts(request: Request) -> list[str]:
    """Return the parts of the path below PATH."""
    return request.path.removeprefix(PATH).strip("/").split("/")
