"""What a simulation leaves for the page, beside its results: its moments, a line each, and the objects that were there
in the end; and how that is read again.

    {"kubestow":"moments","version":1,"configuration":{...}}     the first line of moments.jsonl.gz
    {"number":1,"time":1767225600.0,"figures":{...},...}         a moment; docs/reference/web-api.md has what is in it

A file that is not complete is not there: it gets its name when the simulation is over.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from kubestow import config
from kubestow.config import ConfigError, Features
from kubestow.config.features import SCHEDULING_GATES, FeatureGateError
from kubestow.decisions.reading import Query
from kubestow.decisions.schema import Decision
from kubestow.explaining.world import ExplainError, Setup
from kubestow.model.pod_groups import PodGroup
from kubestow.model.timestamps import parse_time
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.results import whole
from kubestow.simulator.running import DECISIONS
from kubestow.simulator.simulation import Simulation
from kubestow.web import scenes
from kubestow.web.decisions import Attempt, by_reason, nodes_of, without_nodes
from kubestow.web.history import History
from kubestow.web.moments import Moment
from kubestow.web.run import Run
from kubestow.web.scenes import OBJECTS, Scene
from kubestow.web.trying import Bench
from kubestow.web.watching import Watch, Watched
from kubestow.wiring.registry import in_tree_registry

MOMENTS = "moments.jsonl.gz"
VERSION = 1
_FAST = 1
_MOST_BYTES = 1 << 30
_REFUSALS_IN = 200
"""So many decisions are looked at for refusals; each is read from the file."""


class ViewError(Exception):
    """What cannot be shown; the message names the file and says why."""


class Header(msgspec.Struct):
    """The first line."""

    kubestow: str = ""
    version: int = 0
    configuration: dict[str, Any] = {}


# Writing


@contextmanager
def kept(simulation: Simulation, folder: Path, every: float, configuration: dict[str, Any]) -> Iterator[None]:
    """Write the moments of a simulation to a folder, one every so many seconds and one at the end."""
    # Without a time in it, the same simulation gives the same bytes.
    with whole(folder / MOMENTS) as raw, gzip.GzipFile("", "wb", _FAST, raw, mtime=0) as file:
        moments = _Keeping(simulation, cast("BinaryIO", file), every)
        file.write(msgspec.json.encode(Header("moments", VERSION, configuration)) + b"\n")
        moments.look(simulation)
        yield
        moments.write(anyway=True)
    scenes.write(scenes.collected(simulation.core), folder)


class _Keeping:
    """Looks at a simulation again and again."""

    def __init__(self, simulation: Simulation, file: BinaryIO, every: float) -> None:
        archive = simulation.decisions
        assert archive is not None
        self._simulation = simulation
        self._file = file
        self._every = every
        self._encode = msgspec.json.Encoder().encode
        self._watch = Watch(Watched(simulation.core, simulation.metrics, archive.recorder, simulation.loop.clock))

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Keeping":
        """A fork is not watched."""
        return self

    def look(self, simulation: Simulation) -> None:
        """Now, and again later."""
        if simulation is self._simulation:
            self.write()
            simulation.at(simulation.time + self._every, self.look)

    def write(self, *, anyway: bool = False) -> None:
        """What is new."""
        moment = self._watch.look(anyway=anyway)
        if moment is not None:
            self._file.write(self._encode(moment) + b"\n")


# Reading


def read(folder: Path, plugins: PluginCollection | None = None) -> Run:
    """A simulation that was kept; `plugins` are there for what is tried. Raises ViewError."""
    history = History(_MOST_BYTES)
    try:
        header = _read_moments(folder / MOMENTS, history)
        decisions = FromFile(folder / DECISIONS)
        results = msgspec.json.decode((folder / "results.json").read_bytes(), type=dict[str, Any])
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise ViewError(
            f"{folder}: has no {missing}; kubestow simulate --out makes folders that can be shown"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise ViewError(f"{folder}: cannot be read: {error}") from None
    except msgspec.MsgspecError as error:
        raise ViewError(f"{folder / 'results.json'}: not results of a simulation: {error}") from None
    run = Run(str(folder), history, decisions, lambda: header.configuration, results=results)
    try:
        run.bench = _bench(folder / OBJECTS, header.configuration, run, plugins or PluginCollection())
    except ConfigError as error:
        run.cannot_try = "\n".join(map(str, error.problems))
    except FeatureGateError as error:
        run.cannot_try = str(error)
    return run


def _bench(objects: Path, told: dict[str, Any], run: Run, plugins: PluginCollection) -> Bench | None:
    """Where pods are tried as they would have been in the end; raises ConfigError, FeatureGateError."""
    if not objects.exists():
        return None
    on = told.get("features", ())
    features = Features.parse(",".join(f"{gate.name}={str(gate.name in on).lower()}" for gate in SCHEDULING_GATES))
    configuration = config.load(told.get("yaml", ""), features, plugins)
    setup = Setup(configuration, features, plugins.register(in_tree_registry()))
    scene = Scene(setup, cache(partial(scenes.read, objects)), run.history.end)

    def groups() -> list[PodGroup]:
        # Objects that cannot be read are told of where something is tried.
        with suppress(ExplainError):
            return [obj for obj in scene.objects() if isinstance(obj, PodGroup)]
        return []

    run.groups = groups
    return Bench(lambda: scene, run.decisions, lambda: plugins)


def _read_moments(path: Path, history: History) -> Header:
    decoder = msgspec.json.Decoder(Moment)
    with gzip.open(path) as file:
        try:
            header = msgspec.json.decode(file.readline(), type=Header)
            if header.kubestow != "moments" or header.version != VERSION:
                raise ViewError(f"{path}: is of version {header.version}; this program reads version {VERSION}")
            for line in file:
                history.add(decoder.decode(line))
        except msgspec.MsgspecError as error:
            raise ViewError(f"{path}: not moments of a simulation: {error}") from None
        except (IndexError, KeyError, ValueError) as error:
            raise ViewError(f"{path}: a moment does not go with those before: {error}") from None
    if not history.now.moment:
        raise ViewError(f"{path}: has no moments")
    return header


class Line(msgspec.Struct, gc=False):
    """What is kept in memory of a decision in a file; it is found by the same fields as a record."""

    pod: str
    outcome: str
    chosen: str | None
    message: str
    time: str
    id: int = 0
    uid: str = ""
    rejectedBy: tuple[str, ...] = ()
    nominatedNode: str = ""
    owner: str = ""
    offset: int = 0

    @property
    def seconds(self) -> float:
        return parse_time(self.time)


class FromFile:
    """The decisions that a simulation has written: a line each."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, ViewError."""
        self._path = path
        self._lines: list[Line] = []
        decoder = msgspec.json.Decoder(Line)
        offset = 0
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                try:
                    line = decoder.decode(text)
                    parse_time(line.time)
                except (msgspec.MsgspecError, ValueError) as error:
                    raise ViewError(f"{path}:{number}: not a decision: {error}") from None
                line.offset = offset
                self._lines.append(line)
                offset += len(text)

    def find(self, query: Query) -> Iterator[Attempt]:
        for line in reversed(self._lines):
            namespace, _, name = line.pod.partition("/")
            if (
                (not query.namespace or namespace == query.namespace)
                and (not query.pod or query.pod in (name, line.uid))
                and (not query.node or query.node in (line.chosen, line.nominatedNode))
                and (not query.outcome or line.outcome == query.outcome)
                and (not query.plugin or query.plugin in line.rejectedBy)
                and query.since <= line.seconds <= query.until
                and (not query.before or line.id < query.before)
            ):
                attempt = Attempt(
                    line.id, line.seconds, line.outcome, line.message, line.chosen, line.pod, line, line.owner
                )
                if not query.refusedNode or self._is_refused(attempt, query.refusedNode):
                    yield attempt

    def _is_refused(self, attempt: Attempt, node: str) -> bool:
        result = nodes_of(self.decision(attempt)).get(node)
        return result is not None and result.rejected is not None

    def decision(self, attempt: Attempt, *, nodes: bool = True) -> Decision:
        with self._path.open("rb") as file:
            file.seek(attempt.source.offset)
            decision = msgspec.json.decode(file.readline(), type=Decision)
        return decision if nodes else without_nodes(decision)

    def refusals(self, node: str, until: float) -> list[dict[str, Any]]:
        attempts = islice(self.find(Query(until=until)), _REFUSALS_IN)
        found = ((nodes_of(self.decision(attempt)).get(node), attempt) for attempt in attempts)
        return by_reason(
            (one.rejected, attempt) for one, attempt in found if one is not None and one.rejected is not None
        )
