"""Reads files into a `Scenario`: all objects, and at most one document of kind Scenario.

Everything is read and checked before the simulation starts. Each problem is one line with file, line and field.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kubestow.api.files import ObjectsError
from kubestow.api.files.manifests import documents
from kubestow.api.files.sources import Source, describe_error, sources, text_of
from kubestow.apiserver.resources import BY_KIND
from kubestow.simulator.contents import suggest_kind
from kubestow.simulator.recording.files import is_recording
from kubestow.simulator.scenario import foreign, rules, traces
from kubestow.simulator.scenario.foreign import Planned
from kubestow.simulator.scenario.format import API_VERSION, KIND, Object, Spec
from kubestow.simulator.scenario.places import Place
from kubestow.simulator.scenario.traces import Row


@dataclass
class Scenario:
    """The inputs of a simulation."""

    spec: Spec = field(default_factory=Spec)
    objects: list[Object] = field(default_factory=list)
    """In the order of the files."""
    places: list[str] = field(default_factory=list)
    """The place of each object."""
    traces: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of trace files, by name of the arrival."""
    changes: list[Planned] = field(default_factory=list)
    """Changes from files of other tools."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of skipped objects, by unsupported kind."""
    place: Place = field(default_factory=Place)
    """The place of the Scenario."""
    notes: list[str] = field(default_factory=list)
    """Notes on inputs that have no effect."""
    name: str = ""
    declared: frozenset[tuple[str, str]] = frozenset()
    """The kinds that plugins declare, by apiVersion and kind."""


def read(paths: Iterable[str], declared: Iterable[tuple[str, str]] = ()) -> Scenario:
    """Read files and folders, `-` for standard input; raises ObjectsError with all problems.

    `declared` are the apiVersions and kinds that plugins declare.
    """
    scenario = Scenario(declared=frozenset(declared))
    problems, origins, paths = list[str](), list[str](), list(paths)
    for path in paths:
        _read_path(path, scenario, problems, origins)
    if not problems and not scenario.objects and not scenario.changes and not origins:
        unsupported = f" but of unsupported kinds: {', '.join(scenario.skipped)}" if scenario.skipped else ""
        problems.append(f"{', '.join(paths)}: nothing to simulate: no Scenario and no objects{unsupported}")
    if problems:
        raise ObjectsError(problems)
    return scenario


def _read_path(path: str, scenario: Scenario, problems: list[str], origins: list[str], *via: str) -> None:
    """`via` are the files that include this one, innermost first."""
    if "\0" in path:
        problems.append(f"{path!r}: is not a valid file name")
        return
    try:
        if path.endswith(".sktrace"):
            scenario.changes += [one._replace(place=path) for one in foreign.sktrace(Path(path).read_bytes())]
            return
        if path.endswith(".csv"):
            objects, changes = foreign.openb(text_of(path))
            scenario.objects += objects
            scenario.places += [path] * len(objects)
            scenario.changes += [one._replace(place=path) for one in changes]
            return
        for source in sources(path):
            _read_source(source, scenario, problems, origins, *via)
    except foreign.ForeignError as error:
        problems.append(f"{path}: {error}")
    except OSError as error:
        problems.append(f"{error.filename or path}: {describe_error(error)}")
    except UnicodeDecodeError as error:
        recording = "is a recording; run it with kubestow replay or kubestow compare"
        problems.append(f"{path}: {recording if is_recording(path) else describe_error(error)}")


def _read_source(source: Source, scenario: Scenario, problems: list[str], origins: list[str], *via: str) -> None:
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
                    scenario.changes.append(change._replace(place=document.place))
                    continue
                if _add_foreign(document.place, tree, scenario, source, problems, origins, *via):
                    continue
            except foreign.ForeignError as error:
                problems.append(f"{document.place}: {error}")
                continue
            except (AttributeError, KeyError, TypeError) as error:
                problems.append(f"{document.place}: invalid document of another tool: {error}")
                continue
            if isinstance(tree, list):
                problems.append(f"{document.place}: is a list; write a List (kind: List) with these items")
            elif not isinstance(tree, dict) or not tree.get("kind") or not tree.get("apiVersion"):
                problems.append(f"{document.place}: needs apiVersion and kind, such as {API_VERSION} and {KIND}")
            elif str(tree["apiVersion"]).startswith("kubestow"):
                place = Place(source, document.place, str(tree["kind"]))
                if tree["kind"] != KIND:
                    problems.append(
                        place.at("kind").describe(f"unknown kind {tree['kind']!r}; {API_VERSION} has only {KIND}")
                    )
                elif origins:
                    problems.append(f"{document.place}: only one {KIND} is allowed; another one is in {origins[0]}")
                else:
                    _add_scenario(place, tree, scenario, problems)
                origins.append(source.name)
            else:
                _add_object(document.place, tree, scenario, problems)
    except ObjectsError as error:
        problems += error.problems


def _add_foreign(
    place: str, tree: Any, scenario: Scenario, source: Source, problems: list[str], origins: list[str], *via: str
) -> bool:
    """Add a document of another tool; return whether it is one. Raises ForeignError."""
    if foreign.is_snapshot(tree):
        for obj in foreign.snapshot(tree):
            _add_object(place, obj, scenario, problems)
        return True
    if foreign.is_simon(tree):
        if source.name in via:
            raise foreign.ForeignError("includes itself")
        for path in foreign.simon_paths(tree):
            _read_path(str(Path(source.name).parent / path), scenario, problems, origins, source.name, *via)
        return True
    if isinstance(tree, dict) and tree.get("kind") == "ResourcePatch":
        change = foreign.resource_patch(tree)
        if change is not None:
            scenario.changes.append(change._replace(place=place))
        return True
    return False


def _add_object(place: str, tree: Object, scenario: Scenario, problems: list[str]) -> None:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        problems.append(f"{place}: {tree['kind']} needs metadata.name")
        return
    version, kind = tree.get("apiVersion"), tree["kind"]
    if not isinstance(version, str) or not isinstance(kind, str):
        problems.append(f"{place}: apiVersion and kind must be text, such as v1 and Pod")
        return
    if (version, kind) not in BY_KIND and (version, kind) not in scenario.declared:
        if suggestion := suggest_kind(version, kind):
            problems.append(f"{place}: there is no kind {kind!r} in {version}; did you mean {suggestion}?")
            return
        kind = f"{kind} ({version})"
        scenario.skipped[kind] = scenario.skipped.get(kind, 0) + 1
        return
    scenario.objects.append(tree)
    scenario.places.append(place)


def _add_scenario(place: Place, tree: Object, scenario: Scenario, problems: list[str]) -> None:
    assert place.source is not None
    scenario.place = place
    try:
        scenario.spec = rules.parse_spec(tree, scenario.declared)
    except rules.FieldsError as error:
        problems += [place.at(path).describe(message) for path, message in error.problems]
        return
    scenario.name = str(tree.get("metadata", {}).get("name") or "")
    name = place.source.name
    folder = Path() if name == "standard input" else Path(name).parent
    for index, included in enumerate(scenario.spec.include):
        before = len(problems)
        _read_path(str(folder / included), scenario, problems, [name])
        if len(problems) > before:
            problems.insert(before, place.at(f"spec.include[{index}]").describe(f"{included} cannot be used:"))
    for index, arrival in enumerate(scenario.spec.arrivals):
        if arrival.trace is not None:
            where = place.at(f"spec.arrivals[{index}].trace")
            try:
                scenario.traces[arrival.name], unused = traces.read(folder / arrival.trace)
                scenario.notes += [where.describe(f"{arrival.trace}: column {one!r} is not used") for one in unused]
            except ValueError as error:
                problems.append(where.describe(str(error)))
