"""Finds decisions by pod, node, outcome, plugin and time."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from kubestow.api.timestamps import parse_time
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.details import Details, UnderivableError
from kubestow.insight.decisions.groups import GroupRecord
from kubestow.insight.decisions.record import Record

MOST = 1_000
MOST_WITH_NODES = 20
"""A lower limit, because the scheduler waits while the details are derived."""
LOOKED_THROUGH = 2_000
"""Maximum number of the newest decisions that are searched for a rejected node."""
_COST_WITH_EXTENDERS = 20
"""Cost of a decision with extender calls in decisions: it is evaluated on all nodes instead of one."""
_OUTCOMES = (schema.SCHEDULED, schema.UNSCHEDULABLE, schema.ERROR)


class Query(NamedTuple):
    """The criteria of a search; empty fields match everything."""

    namespace: str = ""
    pod: str = ""
    """The name or the UID; of a pod group in queries about groups."""
    node: str = ""
    """The chosen or nominated node."""
    refusedNode: str = ""
    """A node that was rejected, whether or not another one was chosen."""
    outcome: str = ""
    plugin: str = ""
    """A plugin that rejected the pod, or whose permission is missing; with `refusedNode`, that rejected this node."""
    since: float = 0.0
    until: float = float("inf")
    before: int = 0
    """Only decisions with a lower id."""
    limit: int = 100
    nodes: bool = False
    """Whether to include details about nodes."""

    def matches(self, record: Record, details: Details) -> bool:
        """Return whether a decision matches; `details` is only used for `refusedNode`."""
        nodes, plugins = (record.node, record.nominated_node), (*record.plugins, *record.permits)
        if not self.matches_facts(record.id, record.time, record.pod, record.uid, record.outcome, nodes, plugins):
            return False
        if not self.refusedNode:
            return True
        try:
            rejection = details.rejection(record, self.refusedNode)
        except UnderivableError:
            return False
        return rejection is not None and (not self.plugin or self.plugin in rejection.plugins)

    def matches_group(self, record: GroupRecord) -> bool:
        """Return whether a decision about a pod group matches."""
        one = record.decision
        nodes = (*one.chosen.values(), *one.nominated.values())
        return self.matches_facts(record.id, record.time, one.podGroup, one.uid, one.outcome, nodes, one.rejectedBy)

    def matches_facts(
        self,
        number: int,
        time: float,
        key: str,
        uid: str,
        outcome: str,
        nodes: Collection[str | None],
        plugins: Collection[str],
    ) -> bool:
        """Return whether the facts of a decision match; `key` is namespace/name. Ignores `refusedNode`."""
        namespace, _, name = key.partition("/")
        return (
            (not self.namespace or namespace == self.namespace)
            and (not self.pod or self.pod in (name, uid))
            and (not self.node or self.node in nodes)
            and (not self.outcome or outcome == self.outcome)
            and (not self.plugin or bool(self.refusedNode) or self.plugin in plugins)
            and self.since <= time <= self.until
            and (not self.before or number < self.before)
        )


_FIELDS = {name: name for name in Query._fields}
_GROUP_FIELDS = {
    "podGroup" if name == "pod" else name: name for name in _FIELDS if name not in ("refusedNode", "nodes")
}
"""The fields of a query by parameter name."""
AnyFound = TypeVar("AnyFound")


def parse_query(given: Mapping[str, str], *, nodes: bool = False, ignored: Sequence[str] = ()) -> Query:
    """Return a query from the parameters of a request. Raises ValueError with the name of an invalid parameter.

    `nodes` is the default of this field. `ignored` parameters are read by the caller.
    """
    return _parsed(given, Query(nodes=nodes), _FIELDS, ignored)


def parse_group_query(given: Mapping[str, str], *, ignored: Sequence[str] = ()) -> Query:
    """Return a query about pod groups, which are named by the parameter `podGroup`."""
    return _parsed(given, Query(), _GROUP_FIELDS, ignored)


def _parsed(given: Mapping[str, str], query: Query, known: Mapping[str, str], ignored: Sequence[str]) -> Query:
    fields: dict[str, Any] = {}
    for name, text in given.items():
        if name in ignored:
            continue
        if name not in known:
            raise ValueError(f"{name}: unknown parameter; known are {', '.join((*known, *ignored))}")
        if known[name] == "pod" and "/" in text:
            raise ValueError(f"{name}: must be a name or a uid, not {text[:99]!r}; namespace is a separate parameter")
        try:
            fields[known[name]] = _read(text, getattr(query, known[name]))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    query = query._replace(**fields)
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


def newest(records: Iterable[Record], most: int) -> Iterator[Record]:
    """Yield the first records that may be searched for a rejected node, of a total cost of at most `most`."""
    for record in records:
        most -= _COST_WITH_EXTENDERS if record.called_extenders else 1
        if most < 0:
            return
        yield record


def find(archive: Archive, query: Query) -> Iterator[Record]:
    """Return the matching records, newest first."""
    details = archive.details()
    records: Iterable[Record] = archive
    if query.refusedNode:
        records = newest(records, LOOKED_THROUGH)
    return (record for record in records if query.matches(record, details))


def listed(
    found: Iterable[AnyFound], query: Query, decision_of: Callable[[AnyFound], schema.Decision]
) -> schema.DecisionList:
    """Return the decisions that were found, up to the limit of the query."""
    most = min(query.limit, MOST_WITH_NODES if query.nodes else MOST)
    return schema.DecisionList(schema.VERSION, [decision_of(one) for one in islice(found, most)])


def read(archive: Archive, query: Query) -> schema.DecisionList:
    """Return the decisions that match a query."""
    details = archive.details()
    return listed(
        find(archive, query), query, lambda record: archive.decision(record, nodes=query.nodes, details=details)
    )


def read_groups(archive: Archive, query: Query) -> schema.GroupDecisionList:
    """Return the decisions about pod groups that match a query; with details if it names a single group."""
    found = islice(
        (record for record in archive.recorder.groups if query.matches_group(record)), min(query.limit, MOST)
    )
    if not (query.namespace and query.pod):
        return schema.GroupDecisionList(schema.VERSION, [record.decision for record in found])
    details = archive.details()
    few = [archive.group_decision(record, details) for record in islice(found, MOST_WITH_NODES)]
    return schema.GroupDecisionList(schema.VERSION, few)
