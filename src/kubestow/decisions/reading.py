"""Finding decisions: by pod, node, outcome, plugin and time."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubestow.decisions import schema
from kubestow.decisions.record import Record
from kubestow.decisions.recorder import Recorder
from kubestow.decisions.telling import tell
from kubestow.model.timestamps import parse_time

MOST = 1_000
MOST_WITH_NODES = 20
"""The scheduler waits while they are told."""
_OUTCOMES = (schema.SCHEDULED, schema.UNSCHEDULABLE, schema.ERROR)


class Query(NamedTuple):
    """What is looked for; what is empty does not matter."""

    namespace: str = ""
    pod: str = ""
    """The name or the uid."""
    node: str = ""
    """The one that was chosen, or nominated."""
    outcome: str = ""
    plugin: str = ""
    """One that rejected the pod, or whose permission is missing."""
    since: float = 0.0
    until: float = float("inf")
    before: int = 0
    """Only decisions with a lower id."""
    limit: int = 100
    nodes: bool = False
    """Whether what is said of single nodes is wanted, too."""

    def matches(self, record: Record) -> bool:
        return (
            (not self.namespace or record.namespace == self.namespace)
            and (not self.pod or self.pod in (record.name, record.uid))
            and (not self.node or self.node in (record.node, record.nominated_node))
            and (not self.outcome or record.outcome == self.outcome)
            and (not self.plugin or self.plugin in record.plugins or self.plugin in record.waits)
            and self.since <= record.time <= self.until
            and (not self.before or record.id < self.before)
        )


def parse_query(given: Mapping[str, str]) -> Query:
    """A query from the parameters of a request; raises ValueError with the name of the one that is wrong."""
    known = Query()
    fields: dict[str, object] = {}
    for name, text in given.items():
        if name not in Query._fields:
            raise ValueError(f"{name}: unknown; there are {', '.join(Query._fields)}")
        try:
            fields[name] = _read(text, getattr(known, name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    query = known._replace(**fields)  # type: ignore[arg-type]
    if query.outcome and query.outcome not in _OUTCOMES:
        raise ValueError(f"outcome: must be one of {', '.join(_OUTCOMES)}, not {query.outcome!r}")
    return query


def _read(text: str, default: object) -> object:
    match default:
        case bool():
            if text not in ("true", "false"):
                raise ValueError(f"must be true or false, not {text!r}")
            return text == "true"
        case int():
            if not text.isdecimal() or not int(text):
                raise ValueError(f"must be a whole number above 0, not {text[:20]!r}")
            return int(text)
        case float():
            return parse_time(text)
    return text


def find(recorder: Recorder, query: Query) -> Iterator[Record]:
    """The newest first, at most as many as are wanted."""
    left = min(query.limit, MOST_WITH_NODES if query.nodes else MOST)
    for record in recorder:
        if query.matches(record):
            yield record
            left -= 1
            if not left:
                return


def read(recorder: Recorder, query: Query) -> schema.DecisionList:
    """The same as they are told."""
    items = [tell(record, recorder, nodes=query.nodes) for record in find(recorder, query)]
    return schema.DecisionList(schema.VERSION, items)
