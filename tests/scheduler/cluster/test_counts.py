"""Counts of pods by row and by domain equal counts from scratch after any events."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.codec import convert
from kubestow.api.labels import EVERYTHING, NOTHING, parse_selector
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster import counts
from kubestow.scheduler.cluster.counts import PodQuery, RowCounts, Scope
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster

ZONE, RACK = "zone", "rack"


def node(name: str, labels: Mapping[str, str]) -> Node:
    return convert(Node, {"metadata": {"name": name, "labels": labels}})


def pod(name: str, on: str = "", namespace: str = "default", *, leaving: bool = False, **more: Any) -> Pod:
    meta = {"name": name, "uid": name, "namespace": namespace, "labels": more.get("labels", {})}
    if leaving:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return convert(Pod, {"metadata": meta, "spec": {"nodeName": on, "affinity": more.get("affinity")}})


def question(text: str, *namespaces: str, skip_terminating: bool = False) -> PodQuery:
    scope = Scope(frozenset(namespaces) if namespaces else None, parse_selector(text))
    return PodQuery((scope,), skip_terminating)


QUESTIONS = (
    question("app=web", "default"),
    question("app=web"),
    question("app in (web,db),tier", "default", "other", skip_terminating=True),
    question("!app"),
    PodQuery((Scope(None, EVERYTHING), *question("tier=front", "other").scopes), skip_terminating=False),
    PodQuery((Scope(None, NOTHING),), skip_terminating=False),
)

_labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(["web", "db"]), "tier": st.sampled_from(["front", "back"])}
)
_node_labels = st.fixed_dictionaries(
    {}, optional={ZONE: st.sampled_from(["a", "b", "c"]), RACK: st.integers(0, 9).map(str)}
)


def _affinity(term: dict[str, Any], weight: int) -> dict[str, Any]:
    weighted = [{"weight": weight, "podAffinityTerm": term}]
    return {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term, term]},
    }


_terms = st.builds(
    lambda app, key: {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}},
    st.sampled_from(["web", "db"]),
    st.sampled_from([ZONE, RACK]),
)
_affinities = st.one_of(st.none(), st.builds(_affinity, _terms, st.integers(1, 2)))
_node_names = st.sampled_from(["n1", "n2", "n3", "n4"])
_pod_names = st.sampled_from([f"p{number}" for number in range(6)])

_steps = st.one_of(
    st.tuples(st.just("set_node"), _node_names, _node_labels),
    st.tuples(st.just("remove_node"), _node_names),
    st.tuples(
        st.just("set_pod"),
        _pod_names,
        _node_names,
        st.sampled_from(["default", "other"]),
        _labels,
        st.booleans(),
        _affinities,
    ),
    st.tuples(st.just("remove_pod"), _pod_names),
    st.tuples(st.just("assume"), _pod_names, _node_names, _labels),
    st.tuples(st.just("forget"), _pod_names),
    st.tuples(st.just("ask"), st.sampled_from(QUESTIONS), st.sampled_from([ZONE, RACK])),
)


def take(cluster: Cluster, step: tuple[Any, ...]) -> None:
    """Apply one step."""
    match step:
        case ("set_node", name, labels):
            cluster.set_node(node(name, labels))
        case ("remove_node", name):
            cluster.remove_node(name)
        case ("set_pod", name, on, namespace, labels, leaving, affinity):
            cluster.set_pod(pod(name, on, namespace, leaving=leaving, labels=labels, affinity=affinity))
        case ("remove_pod", name):
            cluster.remove_pod(name)
        case ("assume", name, on, labels):
            if cluster.pod(name) is None:
                cluster.assume(PodInfo(pod(name, labels=labels)), on)
        case ("forget", name):
            cluster.forget(name)
        case ("ask", asked, key):
            cluster.matches.count(asked).by_domain(key)


def pods_on_live_nodes(cluster: Cluster) -> Iterator[tuple[int, PodInfo]]:
    for row, (known, pods) in enumerate(zip(cluster.nodes.nodes, cluster.nodes.pods, strict=True)):
        if known is not None:
            for info in pods.values():
                yield row, info


def matches(asked: PodQuery, info: PodInfo) -> bool:
    if asked.skip_terminating and info.terminating:
        return False
    return all(
        (scope.namespaces is None or info.namespace in scope.namespaces) and scope.selector.matches(info.labels)
        for scope in asked.scopes
    )


def check(cluster: Cluster, found: RowCounts, expected: Counter[int]) -> None:
    """Compare rows, total, and sums by zone and rack with the expected numbers by row."""
    table = cluster.nodes
    by_row = found.by_row(table.size).tolist()
    assert {row: count for row, count in enumerate(by_row) if count} == {r: n for r, n in expected.items() if n}
    assert found.total == sum(expected.values())
    for key in (ZONE, RACK):
        sums: Counter[str | None] = Counter()
        for row, count in expected.items():
            known = table.nodes[row]
            assert known is not None
            sums[known.metadata.labels.get(key)] += count
        by_domain = found.by_domain(key).tolist()
        values = [None, *table.label_values(key)[1:]]
        assert len(by_domain) == len(values)
        in_use = table.labels.column(key).id_of
        named = Counter({value: count for value, count in zip(values, by_domain, strict=True) if count})
        assert named == +sums
        assert all(value in in_use for value in named if value is not None)


@given(st.lists(_steps, max_size=40))
def test_counts_equal_those_from_scratch_after_any_events(steps: list[tuple[Any, ...]]) -> None:
    """Nodes and pods are added, changed and removed; pods are assumed and forgotten; questions are asked anywhere."""
    cluster = Cluster()
    for step in steps:
        take(cluster, step)
    for asked in QUESTIONS:
        about = Counter(row for row, info in pods_on_live_nodes(cluster) if matches(asked, info))
        check(cluster, cluster.matches.count(asked), about)
    carried: dict[Any, Counter[int]] = {}
    for row, info in pods_on_live_nodes(cluster):
        for term in info.terms.carried:
            carried.setdefault(term, Counter())[row] += 1
    found = dict(cluster.carried.items())
    assert found.keys() == carried.keys()
    for term, expected in carried.items():
        check(cluster, found[term], expected)


@given(st.lists(_steps, max_size=40))
def test_label_columns_equal_those_from_scratch_after_any_events(steps: list[tuple[Any, ...]]) -> None:
    """Every value of a node has one ID and its number of nodes; values that no node has any more have none."""
    cluster = Cluster()
    for key in (ZONE, RACK):
        cluster.nodes.labels.column(key)
    for step in steps:
        take(cluster, step)
    for key in (ZONE, RACK):
        column = cluster.nodes.labels.column(key)
        labels = [known.metadata.labels.get(key) if known else None for known in cluster.nodes.nodes]
        assert [column.values[value_id] or None for value_id in column.ids[: len(labels)]] == labels
        held = Counter(value for value in labels if value is not None)
        assert column.id_of.keys() == held.keys()
        assert {value: column.members[value_id] for value, value_id in column.id_of.items()} == held
        assert column.labelled == held.total() == int(column.members.sum())


def test_ids_of_unused_values_are_reused() -> None:
    """A cluster whose nodes are replaced all the time does not grow."""
    cluster = Cluster()
    column = cluster.nodes.labels.column("host")
    for number in range(50):
        cluster.set_node(node(f"n{number}", {"host": f"n{number}"}))
        cluster.remove_node(f"n{number}")
    assert len(column.values) == 2


def test_the_least_recently_asked_question_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of questions is limited; a dropped one is counted again when it is asked again."""
    monkeypatch.setattr(counts, "_MAX_QUESTIONS", 2)
    cluster = Cluster()
    cluster.set_node(node("n", {}))
    cluster.set_pod(pod("p1", "n", labels={"app": "web"}))
    first, second, third = question("app=web"), question("app"), question("app=db")
    cluster.matches.count(first)
    cluster.matches.count(second)
    cluster.matches.count(first)
    cluster.matches.count(third)
    assert {asked for asked, _ in cluster.matches.items()} == {first, third}
    cluster.set_pod(pod("p2", "n", labels={"app": "web"}))
    assert cluster.matches.count(second).total == 2
    assert cluster.matches.count(third).total == 0


def test_terms_are_found_by_the_pod_they_select() -> None:
    """Terms match by namespace name or namespace labels, and by the pod's labels."""
    term = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaces": ["named"],
        "namespaceSelector": {"matchLabels": {"team": "red"}},
    }
    cluster = Cluster()
    cluster.set_node(node("n", {}))
    cluster.set_pod(pod("p", "n", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}))

    def found(namespace: str, namespace_labels: dict[str, str], app: str) -> int:
        waiting = PodInfo(pod("w", namespace=namespace, labels={"app": app}))
        return sum(numbers.total for _, numbers in cluster.carried.matching(waiting, namespace_labels))

    assert found("named", {}, "web") == 1
    assert found("other", {"team": "red"}, "web") == 1
    assert found("other", {}, "web") == 0
    assert found("named", {}, "db") == 0
