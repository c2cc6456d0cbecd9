"""Pools with many slices: the cost grows linearly, not quadratically."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.node_selector import NodeTerms
from kubestow.scheduler.cluster.devices.entries import DeviceNumbers, SliceEntry, TaintsOf
from kubestow.scheduler.cluster.devices.pools import Pool
from kubestow.scheduler.cluster.devices.reaching import ReachIndex
from kubestow.scheduler.cluster.devices.state import Devices
from kubestow.scheduler.cluster.state import Cluster
from kubestow.testing import make_node
from support.plugins.device_world import allocated, device, device_class, device_slice

MANY = 60


def slices(**spec: Any) -> list[Any]:
    """Return the slices of one pool, each for its own node or for all."""
    return [
        device_slice(
            "" if spec else f"n{number}", [device(f"d{number}")], name=f"s{number:03}", pool="one", slices=MANY, **spec
        )
        for number in range(MANY)
    ]


@pytest.mark.parametrize("spec", [{}, {"allNodes": True}])
def test_one_pool_for_all_nodes(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices and claims are added one by one; rows are computed once, on demand."""
    calls: Counter[str] = Counter()

    def counted(of: type, name: str) -> None:
        original: Callable[..., Any] = getattr(of, name)

        def count(*args: Any) -> Any:
            calls[name] += 1
            return original(*args)

        monkeypatch.setattr(of, name, count)

    counted(Devices, "_touch")
    counted(Pool, "_view")
    cluster = Cluster()
    cluster.set_object(device_class())
    for number in range(MANY):
        cluster.set_node(make_node(f"n{number}"))
    cluster.devices.row_states(np.arange(MANY))
    for entry in slices(**spec):
        cluster.set_object(entry)
    for number in range(MANY):
        cluster.set_object(allocated(f"c{number}", "one", f"d{number}"))
    found = cluster.devices.row_states(np.arange(MANY))
    assert len(set(found.tolist())) == 1
    assert calls["_touch"] <= 3 * MANY
    assert calls["_view"] == (1 if spec else MANY)


def _for_rack(number: int) -> dict[str, Any]:
    rack = {"key": "rack", "operator": "In", "values": [f"r{number}"]}
    return {"nodeSelectorTerms": [{"matchExpressions": [rack]}]}


@pytest.mark.parametrize("per_device", [False, True])
def test_a_separate_selector_for_every_slice(per_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is compared with selectors for its own labels only."""
    evaluations = 0

    def matches(self: NodeTerms, labels: Mapping[str, str], name: str) -> bool:
        nonlocal evaluations
        evaluations += 1
        return any(term.matches(labels, name) for term in self.terms)

    monkeypatch.setattr(NodeTerms, "matches", matches)
    cluster = Cluster()
    for number in range(MANY):
        cluster.set_node(make_node(f"n{number}", labels={"rack": f"r{number}"}))
        own: dict[str, Any] = {"nodeSelector": _for_rack(number)}
        spec = {"perDeviceNodeSelection": True} if per_device else own
        devices = [device(f"d{number}", **(own if per_device else {}))]
        cluster.set_object(device_slice("", devices, name=f"s{number:03}", pool="one", slices=MANY, **spec))
    seen = [[entry.name for view in cluster.devices.pools_of(row) for entry in view.devices] for row in range(MANY)]
    assert seen == [[f"d{number}"] for number in range(MANY)]
    assert evaluations <= 2 * MANY


_CONDITIONS = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values if "n" in operator else []},
    st.sampled_from(["rack", "zone"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=2, unique=True),
)
_NAMES = st.sampled_from("xy").map(lambda name: {"key": "metadata.name", "operator": "In", "values": [name]})
_TERMS = st.builds(
    lambda labels, fields: {"matchExpressions": labels, "matchFields": fields},
    st.lists(_CONDITIONS, max_size=2),
    st.lists(_NAMES, max_size=1),
)
_SELECTORS = st.lists(_TERMS, min_size=1, max_size=2).map(lambda terms: {"nodeSelector": {"nodeSelectorTerms": terms}})
_PLACES = st.one_of(_SELECTORS, st.just({"allNodes": True}), st.just({}))


@given(
    places=st.lists(st.tuples(st.booleans(), st.lists(_PLACES, min_size=1, max_size=3)), max_size=5),
    name=st.sampled_from("xy"),
    labels=st.dictionaries(st.sampled_from(["rack", "zone"]), st.sampled_from("ab")),
)
def test_no_slice_is_overlooked(places: list[tuple[bool, list[Any]]], name: str, labels: dict[str, str]) -> None:
    """The index by label value finds the same slices as a scan."""
    entries = []
    for number, (per_device, reaches) in enumerate(places):
        spec = {"perDeviceNodeSelection": True} if per_device else reaches[0]
        devices = [{"name": f"d{place}", **(reach if per_device else {})} for place, reach in enumerate(reaches)]
        source = device_slice("", devices, name=f"s{number}", pool="one", **spec)
        entries.append(SliceEntry(source, TaintsOf(), DeviceNumbers()))
    node = make_node(name, labels=labels)
    found = {entry.name for group in ReachIndex(entries).groups_for(node) for entry in group}
    assert found == {entry.name for entry in entries if entry.includes(node)}
