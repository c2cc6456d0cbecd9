"""Files to a `Scenario`: all objects, and the one document of kind Scenario, if there is any.

Everything is read and checked before anything is simulated. Each problem is a line with file, line and field; the line
of a field is looked up only then, in the text that was read.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubestow.apiserver.kubelets import description
from kubestow.apiserver.resources import BY_KIND
from kubestow.config.durations import Duration
from kubestow.model import quantity
from kubestow.objects import ObjectsError
from kubestow.objects.manifests import documents
from kubestow.objects.sources import Source, problem_of, sources, text_of
from kubestow.simulator.scenario import foreign
from kubestow.simulator.scenario.foreign import Planned
from kubestow.simulator.scenario.format import API_VERSION, KIND, Arrival, Document, Event, Object, Span, Spec

_PATH = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_ACTIONS = ("fail", "drain", "cordon", "uncordon", "remove", "scale", "apply", "delete")
_TRACE_COLUMNS = ("at", "run", "cpu", "memory", "name")


@dataclass
class Scenario:
    """All that a simulation is made of."""

    spec: Spec = field(default_factory=Spec)
    objects: list[Object] = field(default_factory=list)
    """In the order of the files."""
    places: dict[int, str] = field(default_factory=dict)
    """Where objects stand, by their id()."""
    traces: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """The rows of trace files, by name."""
    changes: list[Planned] = field(default_factory=list)
    """What files of other tools say happens later."""
    skipped: dict[str, int] = field(default_factory=dict)
    """How many objects there were of kinds that mean nothing here."""


class _ProblemError(ValueError):
    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def seconds(span: Span) -> float:
    """A duration in seconds; raises ValueError."""
    found = Duration.parse(span).seconds if isinstance(span, str) else float(span)
    if found < 0:
        raise ValueError(f"{span} is negative; time does not go back")
    return found


def read(paths: Iterable[str]) -> Scenario:
    """The scenario in files and folders, `-` for standard input; raises ObjectsError with all that is wrong."""
    scenario, problems, found = Scenario(), list[str](), list[str]()
    for path in paths:
        _read_path(path, scenario, problems, found)
    if not problems and not scenario.objects and not scenario.changes and not found:
        problems.append("there is nothing to simulate: no Scenario and no objects")
    if problems:
        raise ObjectsError(problems)
    return scenario


def _read_path(path: str, scenario: Scenario, problems: list[str], found: list[str], *by: str) -> None:
    """`by` are the files that name it, one after the other."""
    if "\0" in path:
        problems.append(f"{path!r}: is not the name of a file")
        return
    try:
        if path.endswith(".sktrace"):
            scenario.changes += foreign.sktrace(Path(path).read_bytes())
            return
        if path.endswith(".csv"):
            objects, changes = foreign.openb(text_of(path))
            scenario.objects += objects
            scenario.changes += changes
            return
        for source in sources(path):
            _read_source(source, scenario, problems, found, *by)
    except foreign.ForeignError as error:
        problems.append(f"{path}: {error}")
    except OSError as error:
        problems.append(f"{error.filename or path}: {problem_of(error)}")
    except UnicodeDecodeError as error:
        problems.append(f"{path}: {problem_of(error)}")


def _read_source(source: Source, scenario: Scenario, problems: list[str], found: list[str], *by: str) -> None:
    begin: float | None = None
    try:
        for document in documents(source):
            try:
                tree = msgspec.json.decode(document.data)
            except msgspec.DecodeError as error:
                problems.append(f"{document.place}: not valid JSON: {error}")
                continue
            try:
                if foreign.is_record(tree):
                    change, begin = foreign.recorded(tree, begin)
                    scenario.changes.append(change)
                    continue
                if _is_foreign(document.place, tree, scenario, source, problems, found, *by):
                    continue
            except foreign.ForeignError as error:
                problems.append(f"{document.place}: {error}")
                continue
            except (AttributeError, KeyError, TypeError) as error:
                problems.append(f"{document.place}: a document of another tool, but not shaped as its are: {error}")
                continue
            if isinstance(tree, list):
                problems.append(f"{document.place}: is a list; write what is in it as the items of a List (kind: List)")
            elif not isinstance(tree, dict) or not tree.get("kind") or not tree.get("apiVersion"):
                problems.append(f"{document.place}: needs apiVersion and kind, such as {API_VERSION} and {KIND}")
            elif tree["kind"] == KIND and str(tree.get("apiVersion", "")).startswith("kubestow.dev/"):
                if found:
                    problems.append(f"{document.place}: there is a {KIND} already, in {found[0]}; one is enough")
                found.append(source.name)
                _take_scenario(source, document.place, tree, scenario, problems)
            else:
                _take_object(document.place, tree, scenario, problems)
    except ObjectsError as error:
        problems += error.problems


def _is_foreign(
    place: str, tree: Any, scenario: Scenario, source: Source, problems: list[str], found: list[str], *by: str
) -> bool:
    """Take a document of another tool; whether it is one. Raises ForeignError."""
    if foreign.is_snapshot(tree):
        for obj in foreign.snapshot(tree):
            _take_object(place, obj, scenario, problems)
        return True
    if foreign.is_simon(tree):
        if source.name in by:
            raise foreign.ForeignError("names files that name it in turn")
        for path in foreign.simon_paths(tree):
            _read_path(str(Path(source.name).parent / path), scenario, problems, found, source.name, *by)
        return True
    if isinstance(tree, dict) and tree.get("kind") == "ResourcePatch":
        change = foreign.resource_patch(tree)
        if change is not None:
            scenario.changes.append(change)
        return True
    return False


def _take_object(place: str, tree: Object, scenario: Scenario, problems: list[str]) -> None:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        problems.append(f"{place}: {tree['kind']} needs metadata.name")
        return
    version, kind = tree.get("apiVersion"), tree["kind"]
    if not isinstance(version, str) or not isinstance(kind, str):
        problems.append(f"{place}: apiVersion and kind must be text, such as v1 and Pod")
        return
    if (version, kind) not in BY_KIND:
        kind = f"{kind} ({version})"
        scenario.skipped[kind] = scenario.skipped.get(kind, 0) + 1
        return
    scenario.objects.append(tree)
    scenario.places[id(tree)] = place


def _take_scenario(source: Source, place: str, tree: Object, scenario: Scenario, problems: list[str]) -> None:
    try:
        if tree.get("apiVersion") != API_VERSION:
            raise _ProblemError("apiVersion", f"is {tree.get('apiVersion')!r}; this program reads {API_VERSION}")
        scenario.spec = msgspec.convert(tree, Document).spec
    except msgspec.ValidationError as error:
        path, message = _split(str(error))
        problems.append(_told(source, place, path, message))
        return
    except _ProblemError as error:
        problems.append(_told(source, place, error.path, str(error)))
        return
    problems += [_told(source, place, f"spec.{one.path}", str(one)) for one in _wrong(scenario.spec)]
    folder = Path() if source.name == "standard input" else Path(source.name).parent
    for index, name in enumerate(scenario.spec.include):
        before = len(problems)
        _read_path(str(folder / name), scenario, problems, [source.name])
        if len(problems) > before:
            problems.insert(before, _told(source, place, f"spec.include[{index}]", f"{name} cannot be used:"))
    for index, arrival in enumerate(scenario.spec.arrivals):
        if arrival.trace is not None:
            try:
                scenario.traces[arrival.name] = _trace(folder / arrival.trace)
            except ValueError as error:
                problems.append(_told(source, place, f"spec.arrivals[{index}].trace", str(error)))


def _split(message: str) -> tuple[str, str]:
    """The path and the message of what msgspec says."""
    at = _PATH.search(message)
    path, said = (at[1], message[: at.start()]) if at else ("", message)
    unknown = _UNKNOWN.match(said)
    if unknown:
        return f"{path}.{unknown[1]}".lstrip("."), "is not a field that there is"
    return path, said[0].lower() + said[1:]


def _told(source: Source, place: str, path: str, message: str) -> str:
    line = _line(source.text, path)
    where = f"{source.name}: line {line}" if line else place
    return f"{where}: {path}: {message}"


def _line(text: str, path: str) -> int | None:
    """Where a field of the Scenario stands in a text."""
    steps = [step for step in re.split(r"[.\[\]]+", path) if step]
    try:
        for node in yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            kind = _value(node, "kind")
            if kind is not None and kind[1].value == KIND:
                return _descend(node, steps)
    except yaml.YAMLError:
        pass
    return None


def _descend(node: Any, steps: list[str]) -> int:
    line: int = node.start_mark.line + 1
    for step in steps:
        if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
            node = node.value[int(step)]
            line = node.start_mark.line + 1
        else:
            entry = _value(node, step)
            if entry is None:
                break
            line, node = entry[0].start_mark.line + 1, entry[1]
    return line


def _value(node: Any, key: str) -> tuple[Any, Any] | None:
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((one, value) for one, value in entries if one.value == key), None)


# What the types cannot say


def _wrong(spec: Spec) -> Iterator[_ProblemError]:
    yield from _spans(msgspec.to_builtins(spec), "")
    if spec.sample is not None and _is_nothing(spec.sample):
        yield _ProblemError("sample", "must be more than nothing")
    for index, group in enumerate(spec.nodes):
        yield from _wrong_group(group, f"nodes[{index}]")
    for index, scaled in enumerate(spec.nodeGroups):
        path = f"nodeGroups[{index}]"
        yield from _wrong_group(scaled.template, f"{path}.template")
        if not 0 <= scaled.min <= scaled.max:
            yield _ProblemError(f"{path}.min", f"must be between 0 and max, which is {scaled.max}")
    names: set[str] = set()
    for index, arrival in enumerate(spec.arrivals):
        yield from _wrong_arrival(arrival, f"arrivals[{index}]")
        if arrival.name in names:
            yield _ProblemError(f"arrivals[{index}].name", f"{arrival.name!r} is the name of another one, too")
        names.add(arrival.name)
    for index, event in enumerate(spec.events):
        yield from _wrong_event(event, f"events[{index}]")


_SPANS = frozenset(
    {
        *("duration", "sample", "request", "watch", "start", "run", "stop", "exponential", "low", "high", "median"),
        *("every", "begin", "until", "at", "lasts", "delay", "idle"),
    }
)
"""Fields that are durations."""


def _spans(tree: Any, path: str) -> Iterator[_ProblemError]:
    """Durations that are none, wherever they are; manifests of other people's are left alone."""
    if isinstance(tree, list):
        for index, one in enumerate(tree):
            is_span = path.endswith((".times", ".choice"))
            yield from _spans(one, f"{path}[{index}]") if not is_span else _span(one, f"{path}[{index}]")
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key in ("pod", "object", "apply", "template", "nodes"):
                continue
            inner = f"{path}.{key}".lstrip(".")
            if key in _SPANS and isinstance(value, str | int | float):
                yield from _span(value, inner)
            else:
                yield from _spans(value, inner)


def _span(value: Any, path: str) -> Iterator[_ProblemError]:
    try:
        seconds(value)
    except ValueError as error:
        yield _ProblemError(path, str(error))


def _is_nothing(value: Span) -> bool:
    try:
        return seconds(value) == 0
    except ValueError:
        return False  # told as no duration


def _wrong_group(group: description.Group, path: str) -> Iterator[_ProblemError]:
    if group.count < 0:
        yield _ProblemError(f"{path}.count", "must not be negative")
    if group.count > 1 and "{}" not in group.name:
        yield _ProblemError(f"{path}.name", "needs {} for the number, as in small-{}")
    for name, amount in {"cpu": group.cpu, "memory": group.memory, "storage": group.storage, **group.resources}.items():
        try:
            if quantity.nano(amount) < 0:
                yield _ProblemError(f"{path}.{name}", "must not be negative")
        except quantity.QuantityError as error:
            yield _ProblemError(f"{path}.{name}", str(error))


def _wrong_arrival(arrival: Arrival, path: str) -> Iterator[_ProblemError]:
    if (arrival.pod is None) == (arrival.object is None):
        yield _ProblemError(path, "needs either a pod or an object")
    if sum(one is not None for one in (arrival.times, arrival.poisson, arrival.trace)) != 1:
        yield _ProblemError(path, "needs one of times, poisson and trace")
    if arrival.poisson is not None and _is_nothing(arrival.poisson.every):
        yield _ProblemError(f"{path}.poisson.every", "must be more than nothing")
    if arrival.poisson is not None and arrival.until is None and arrival.count is None:
        yield _ProblemError(path, "needs until or count: chance alone never ends")
    if isinstance(arrival.run, msgspec.Struct):
        chosen = [value for value in msgspec.structs.asdict(arrival.run).values() if value is not None]
        if len(chosen) != 1:
            yield _ProblemError(f"{path}.run", "needs one of exponential, uniform, lognormal and choice")


def _wrong_event(event: Event, path: str) -> Iterator[_ProblemError]:
    chosen = [name for name in _ACTIONS if getattr(event, name) is not None]
    if len(chosen) != 1:
        yield _ProblemError(path, f"needs one of {', '.join(_ACTIONS)}")
        return
    nodes = getattr(event, chosen[0])
    if chosen[0] in _ACTIONS[:5] and sum(one is not None for one in (nodes.names, nodes.labels, nodes.count)) != 1:
        yield _ProblemError(f"{path}.{chosen[0]}", "needs one of names, labels and count")
    if event.lasts is not None and chosen[0] not in ("fail", "drain", "cordon"):
        yield _ProblemError(f"{path}.lasts", f"has no meaning for {chosen[0]}")


def _trace(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {problem_of(error)}") from None
    if not rows or "at" not in rows[0]:
        raise ValueError(f"{path}: needs rows with a column `at`; others are {', '.join(_TRACE_COLUMNS[1:])}")
    for number, row in enumerate(rows, start=2):
        for column in ("at", "run"):
            text = row.get(column) or "0"
            try:
                seconds(float(text) if re.fullmatch(r"-?[0-9.]+", text) else text)
            except ValueError as error:
                raise ValueError(f"{path}: line {number}: {column}: {error}") from None
    return rows
