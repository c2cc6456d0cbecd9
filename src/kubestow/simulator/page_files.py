"""The file `moments.jsonl.gz`, from which `kubestow view` shows a simulation: how it is written and read.

It holds facts: the changes of the cluster, with moments in between. Reading restores the history of the cluster, so
that the rest of the page is the same as for a live scheduler.

    {"kubestow":"moments","version":2,"configuration":{...}}
    {"type":"change","part":"node","key":"n1","value":[{"metadata":{...},...},0,["",1,1]]}
    {"type":"change","part":"pod","key":"UID","value":{"node":"n1","row":0,"number":1,"metadata":{...},"spec":{...}}}
    {"type":"moment","number":1,"time":1767225600.0,"figures":{...},...}
    {"type":"change","part":"pod","key":"UID"}

A change without a value is a deletion. For a changed pod, only the parts that differ are written: all of its metadata,
spec or status. If something changes several times between two moments, only the last state is written. The pods that
are pending at the end come last, with the part "pending".
"""

import gzip
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from kubestow import config
from kubestow.api import codec
from kubestow.api.kinds import KINDS
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodSpec, PodStatus
from kubestow.api.timestamps import parse_time
from kubestow.config import ConfigError, Features
from kubestow.config.features import SCHEDULING_GATES, FeatureGateError
from kubestow.insight.decisions.reading import Query
from kubestow.insight.decisions.schema import Decision, Rejected
from kubestow.insight.explain.world import Setup
from kubestow.insight.page.decisions import Attempt, by_reason, without_nodes
from kubestow.insight.page.history import PageHistory
from kubestow.insight.page.moments import Moment
from kubestow.insight.page.run import Run
from kubestow.insight.page.scenes import Scene, all_objects
from kubestow.insight.page.trying import DryRuns
from kubestow.insight.page.watching import Watch, WatchedScheduler
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.cluster.history import NODE, POD, History
from kubestow.scheduler.cluster.past import Past
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster, KnownNode, PlacedPod
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.simulator.results import atomic_file
from kubestow.simulator.running import DECISIONS
from kubestow.simulator.simulation import Simulation

T = TypeVar("T")
MOMENTS = "moments.jsonl.gz"
VERSION = 2
_COMPRESSION_LEVEL = 1
_MAX_HISTORY_BYTES = 1 << 30
_MAX_SEARCHED = 200
"""Number of decisions searched for rejections; each is read from the file."""
_PENDING = "pending"
_PARTS: dict[str, str | type] = {
    NODE: NODE,
    POD: POD,
    **{kind.__name__: kind for kind in KINDS.values()},
}
"""The parts of the cluster that the page shows, and those that dry runs depend on, by their names in the file."""
_NAMES = {part: name for name, part in _PARTS.items()}


class ViewError(Exception):
    """Results cannot be shown; the message names the file and says why."""


class Header(msgspec.Struct):
    """The first line of the file."""

    kubestow: Literal["moments"]
    version: int
    configuration: dict[str, Any] = {}


class Change(msgspec.Struct, tag="change", omit_defaults=True):
    """A change of the cluster: the new value of a part; without a value, its deletion."""

    part: str
    key: str
    value: msgspec.Raw | UnsetType = UNSET


class PodValue(msgspec.Struct):
    """The value of a pod on a node; its spec has no node name. An unset field equals that of the previous value."""

    node: str
    row: int
    number: int
    metadata: ObjectMeta | UnsetType = UNSET
    spec: msgspec.Raw | UnsetType = UNSET
    status: msgspec.Raw | UnsetType = UNSET


_LINE: msgspec.json.Decoder[Change | Moment] = msgspec.json.Decoder(Change | Moment)
_NODE, _POD = msgspec.json.Decoder(KnownNode), msgspec.json.Decoder(PodValue)

# Writing


@contextmanager
def record_moments(simulation: Simulation, folder: Path, every: float, configuration: dict[str, Any]) -> Iterator[None]:
    """Write changes and moments of a simulation to a folder: a moment each `every` seconds, and one at the end."""
    # Without a timestamp, the same simulation produces the same bytes.
    with atomic_file(folder / MOMENTS) as raw, gzip.GzipFile("", "wb", _COMPRESSION_LEVEL, raw, mtime=0) as file:
        writer = _MomentWriter(simulation, cast("BinaryIO", file), every)
        writer.write(Header("moments", VERSION, configuration))
        writer.record(simulation)
        yield
        writer.write_moment(anyway=True)
        for pod in simulation.core.intake.pending_pods():
            writer.write(Change(_PENDING, pod.metadata.uid, _encoded(pod)))


class _MomentWriter:
    """Writes the changes of a simulation at regular intervals."""

    def __init__(self, simulation: Simulation, file: BinaryIO, every: float) -> None:
        archive = simulation.decisions
        assert archive is not None
        self._simulation = simulation
        self._file = file
        self._every = every
        self._encode = msgspec.json.Encoder().encode
        self._watch = Watch(
            WatchedScheduler(simulation.core, simulation.metrics, archive.recorder, simulation.loop.clock)
        )
        self._history = archive.recorder.history
        self._history.on_drop.append(self._write_changes)
        self._revision = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "_MomentWriter":
        """A fork is not recorded."""
        return self

    def record(self, simulation: Simulation) -> None:
        """Write a moment, and schedule the next one."""
        if simulation is self._simulation:
            self.write_moment()
            simulation.at(simulation.time + self._every, self.record)

    def write(self, line: Header | Change | Moment) -> None:
        """Write a line."""
        self._file.write(self._encode(line) + b"\n")

    def write_moment(self, *, anyway: bool = False) -> None:
        """Write what has changed since the last moment, if anything has."""
        moment = self._watch.next_moment(anyway=anyway)
        if moment is not None:
            self._write_changes()
            # The reader counts the revisions that are written.
            self.write(replace(moment, revision=0, row_changes=0))

    def _write_changes(self) -> None:
        start, self._revision = self._revision, self._history.revision
        changed: dict[tuple[str | type, Hashable], tuple[Any, Any]] = {}
        for part, key, before, after in self._history.between(start, self._revision):
            first = changed.get((part, key))
            changed[part, key] = (before if first is None else first[0], after)
        for (part, key), (before, after) in changed.items():
            if before is not after and part in _NAMES:
                value = UNSET if after is None else _value(part, before, after)
                self.write(Change(_NAMES[part], str(key), value))


def _value(part: str | type, before: Any, after: Any) -> msgspec.Raw:
    """Encode the value of a part after a change."""
    if part is NODE:
        return msgspec.Raw(msgspec.json.encode(after._replace(node=_without_source(after.node))))
    if part is not POD:
        received, assumed = after
        return _encoded(assumed or received)
    new, old = _parts(after.pod.pod), None if before is None else _parts(before.pod.pod)
    names = ("metadata", "spec", "status")
    parts = {name: new[at] for at, name in enumerate(names) if old is None or new[at] != old[at]}
    placed = {"node": after.node, "row": after.row, "number": after.number}
    return msgspec.Raw(msgspec.json.encode(placed | parts))


def _parts(pod: Pod) -> tuple[ObjectMeta, PodSpec, PodStatus]:
    """Return the parts of a pod, without its node."""
    return pod.metadata, replace(pod.spec, nodeName=""), pod.status


def _encoded(obj: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(_without_source(obj)))


def _without_source(obj: Any) -> Any:
    """Return an object without the JSON that it was read from."""
    return replace(obj, source=msgspec.Raw(b"null")) if hasattr(obj, "source") else obj


# Reading


def read(folder: Path, plugins: PluginCollection | None = None) -> Run:
    """Read the results of a simulation, with `plugins` available for dry runs. Raises ViewError."""
    restored = _StoredHistory()
    try:
        stored = restored.read(folder / MOMENTS)
        decisions = DecisionFile(folder / DECISIONS)
        results = msgspec.json.decode((folder / "results.json").read_bytes(), type=dict[str, Any])
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise ViewError(
            f"{folder}: has no {missing}; kubestow simulate --out creates folders that can be shown"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise ViewError(f"{folder}: cannot be read: {error}") from None
    except msgspec.MsgspecError as error:
        raise ViewError(f"{folder / 'results.json'}: not results of a simulation: {error}") from None
    run = Run(str(folder), restored.history, decisions, lambda: stored, results=results)
    try:
        run.bench = _bench(restored, stored, run, plugins or PluginCollection())
    except ConfigError as error:
        run.no_dry_runs_reason = "\n".join(map(str, error.problems))
    except FeatureGateError as error:
        run.no_dry_runs_reason = str(error)
    return run


def _bench(restored: "_StoredHistory", stored: dict[str, Any], run: Run, plugins: PluginCollection) -> DryRuns:
    """Return the dry runs in the final state of the cluster; raises ConfigError, FeatureGateError."""
    on = stored.get("features", ())
    features = Features.parse(",".join(f"{gate.name}={str(gate.name in on).lower()}" for gate in SCHEDULING_GATES))
    configuration = config.load(stored.get("yaml", ""), features, plugins)
    setup = Setup(configuration, features, plugins.register(in_tree_registry()))
    scene = Scene(setup, all_objects(run.history.now.cluster, restored.pending), run.history.end)
    return DryRuns(lambda: scene, run.decisions, lambda: plugins)


class _StoredHistory:
    """The cluster and its history, restored from a file."""

    def __init__(self) -> None:
        self._changes = History()
        self._values: dict[tuple[str | type, str], Any] = {}
        """The current values, by part and key."""
        self._past = Past(Cluster(), Nominator(), self._changes)
        self.history = PageHistory(self._past.cluster, self._past.nominator, self._changes, _MAX_HISTORY_BYTES)
        self.pending: list[Pod] = []
        """The pods that are pending at the end."""

    def read(self, path: Path) -> dict[str, Any]:
        """Read a file and return its configuration. Raises OSError, EOFError, zlib.error, ViewError."""
        with gzip.open(path) as file:
            try:
                header = msgspec.json.decode(file.readline(), type=Header)
                if header.version != VERSION:
                    found = f"is of version {header.version}, and this program reads version {VERSION}"
                    raise ViewError(f"{path}: {found}; run the simulation again")
                for line in file:
                    self._apply(_LINE.decode(line))
                self._past.go_to(self._changes.revision)
            except msgspec.MsgspecError as error:
                raise ViewError(f"{path}: not moments of a simulation: {error}") from None
            except (LookupError, ValueError) as error:
                raise ViewError(f"{path}: inconsistent change: {error!r}") from None
        if not self.history.now.last.number:
            raise ViewError(f"{path}: has no moments")
        return header.configuration

    def _apply(self, line: Change | Moment) -> None:
        if isinstance(line, Moment):
            self.history.add(replace(line, revision=self._changes.revision))
        elif line.part == _PENDING and line.value is not UNSET:
            self.pending.append(codec.decode(Pod, line.value))
        else:
            part = _PARTS[line.part]
            before = self._values.pop((part, line.key), None)
            after = None if line.value is UNSET else _decoded(part, line.value, before)
            if after is not None:
                self._values[part, line.key] = after
            self._changes.note(part, line.key, before, after)


def _decoded(part: str | type, value: msgspec.Raw, before: Any) -> Any:
    """Decode the value of a part after a change."""
    if isinstance(part, type):
        return codec.decode(part, value), None
    if part is NODE:
        return _NODE.decode(value)
    placed = _POD.decode(value)
    metadata, spec, status = _parts(Pod() if before is None else before.pod.pod)
    if placed.spec is not UNSET:
        spec = _shared(PodSpec, bytes(placed.spec))
    if placed.status is not UNSET:
        status = _shared(PodStatus, bytes(placed.status))
    spec = replace(spec, nodeName=placed.node)
    pod = Pod(metadata if placed.metadata is UNSET else placed.metadata, spec, status)
    info = PodInfo(pod) if before is None else before.pod.in_version(pod)[0]
    return PlacedPod(info, placed.node, placed.row, placed.number)


@lru_cache(1024)
def _shared(kind: type[T], text: bytes) -> T:
    """Decode a part of a pod; equal parts of different pods are one object."""
    return msgspec.json.decode(text, type=kind)


class Line(msgspec.Struct, gc=False):
    """The fields of a decision that are kept in memory for searching, and its offset in the file."""

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


class DecisionFile:
    """The decisions that a simulation wrote, one per line."""

    def __init__(self, path: Path) -> None:
        """Read the file; raises OSError, ViewError."""
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
            nodes, time = (line.chosen, line.nominatedNode), line.seconds
            if query.matches_facts(line.id, time, line.pod, line.uid, line.outcome, nodes, line.rejectedBy):
                attempt = Attempt(line.id, time, line.outcome, line.message, line.chosen, line.pod, line, line.owner)
                if not query.refusedNode or self._is_rejected(attempt, query.refusedNode, query.plugin):
                    yield attempt

    def _is_rejected(self, attempt: Attempt, node: str, plugin: str) -> bool:
        rejected = self._rejected(attempt, node)
        return rejected is not None and (not plugin or plugin in (rejected.plugin, *rejected.others))

    def _rejected(self, attempt: Attempt, node: str) -> Rejected | None:
        result = self.decision(attempt).by_node.get(node)
        return None if result is None else result.rejected

    def decision(self, attempt: Attempt, *, nodes: bool = True) -> Decision:
        with self._path.open("rb") as file:
            file.seek(attempt.source.offset)
            decision = msgspec.json.decode(file.readline(), type=Decision)
        return decision if nodes else without_nodes(decision)

    def refusals(self, node: str, until: float) -> list[dict[str, Any]]:
        attempts = islice(self.find(Query(until=until)), _MAX_SEARCHED)
        found = ((self._rejected(attempt, node), attempt) for attempt in attempts)
        return by_reason((rejected, attempt) for rejected, attempt in found if rejected is not None)
