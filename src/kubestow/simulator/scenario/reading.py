"""Files to a `Scenario`: all objects, and the one document of kind Scenario, if there is any.

Everything is read and checked before anything is simulated. Each problem is a line with file, line and field.
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
    """All that a simulation is made of."""

    spec: Spec = field(default_factory=Spec)
    objects: list[Object] = field(default_factory=list)
    """In the order of the files."""
    places: list[str] = field(default_factory=list)
    """Where each of them stands."""
    traces: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of trace files, by name."""
    changes: list[Planned] = field(default_factory=list)
    """What files of other tools say happens later."""
    skipped: dict[str, int] = field(default_factory=dict)
    """How many objects there were of kinds that mean nothing here."""
    place: Place = field(default_factory=Place)
    """Where the Scenario stands."""
    notes: list[str] = field(default_factory=list)
    """What is no mistake, but maybe not what was meant."""


def read(paths: Iterable[str]) -> Scenario:
    """The scenario in files and folders, `-` for standard input; raises ObjectsError with all that is wrong."""
    scenario, problems, found, paths = Scenario(), list[str](), list[str](), list(paths)
    for path in paths:
        _read_path(path, scenario, problems, found)
    if not problems and not scenario.objects and not scenario.changes and not found:
        but = f" but of kinds that have no part here: {', '.join(scenario.skipped)}" if scenario.skipped else ""
        problems.append(f"{', '.join(paths)}: there is nothing to simulate: no Scenario and no objects{but}")
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
            scenario.changes += [one._replace(place=path) for one in foreign.sktrace(Path(path).read_bytes())]
            return
        if path.endswith(".csv"):
            objects, changes = foreign.openb(text_of(path))
            scenario.objects += objects
            scenario.places += [path] * len(objects)
            scenario.changes += [one._replace(place=path) for one in changes]
            return
        for source in sources(path):
            _read_source(source, scenario, problems, found, *by)
    except foreign.ForeignError as error:
        problems.append(f"{path}: {error}")
    except OSError as error:
        problems.append(f"{error.filename or path}: {describe_error(error)}")
    except UnicodeDecodeError as error:
        recording = "is a recording; kubestow replay and kubestow compare run one, by itself"
        problems.append(f"{path}: {recording if is_recording(path) else describe_error(error)}")


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
                    scenario.changes.append(change._replace(place=document.place))
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
            elif str(tree["apiVersion"]).startswith("kubestow"):
                place = Place(source, document.place, str(tree["kind"]))
                if tree["kind"] != KIND:
                    problems.append(
                        place.at("kind").told(f"{tree['kind']!r} is no kind of {API_VERSION}; there is {KIND}")
                    )
                elif found:
                    problems.append(f"{document.place}: there is a {KIND} already, in {found[0]}; one is enough")
                else:
                    _take_scenario(place, tree, scenario, problems)
                found.append(source.name)
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
            scenario.changes.append(change._replace(place=place))
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
        if meant := suggest_kind(version, kind):
            problems.append(f"{place}: there is no kind {kind!r} in {version}; did you mean {meant}?")
            return
        kind = f"{kind} ({version})"
        scenario.skipped[kind] = scenario.skipped.get(kind, 0) + 1
        return
    scenario.objects.append(tree)
    scenario.places.append(place)


def _take_scenario(place: Place, tree: Object, scenario: Scenario, problems: list[str]) -> None:
    assert place.source is not None
    scenario.place = place
    try:
        scenario.spec = rules.spec_of(tree)
    except rules.FieldsError as error:
        problems += [place.at(path).told(message) for path, message in error.problems]
        return
    name = place.source.name
    folder = Path() if name == "standard input" else Path(name).parent
    for index, included in enumerate(scenario.spec.include):
        before = len(problems)
        _read_path(str(folder / included), scenario, problems, [name])
        if len(problems) > before:
            problems.insert(before, place.at(f"spec.include[{index}]").told(f"{included} cannot be used:"))
    for index, arrival in enumerate(scenario.spec.arrivals):
        if arrival.trace is not None:
            there = place.at(f"spec.arrivals[{index}].trace")
            try:
                scenario.traces[arrival.name], unused = traces.read(folder / arrival.trace)
                scenario.notes += [there.told(f"{arrival.trace}: column {one!r} is not used") for one in unused]
            except ValueError as error:
                problems.append(there.told(str(error)))
