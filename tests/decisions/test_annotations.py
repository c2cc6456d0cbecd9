"""Decisions as annotations of kube-scheduler-simulator, cut to what fits."""

import json
from typing import Any

from kubestow.insight.decisions import schema
from kubestow.insight.decisions.annotations import CUT, MOST_BYTES, PREFIX, Plugins, annotations
from kubestow.scheduler.framework.results import Rejection
from kubestow.testing import SchedulerHarness, make_node, make_pod

PLUGINS = Plugins(
    ["NodeAffinity", "NodeResourcesFit"],
    ["TaintToleration", "NodeAffinity", "NodeResourcesFit"],
    ["NodeResourcesFit"],
    ["VolumeBinding", "DynamicResources"],
    ["Quota", "Gang"],
)
SCORES = {"NodeResourcesFit": 40, "TaintToleration": 300}


def decision(nodes: dict[str, schema.NodeResult], **fields: Any) -> schema.Decision:
    known: dict[str, Any] = {"version": 1, "pod": "d/p", "outcome": "scheduled", "chosen": "best", "message": ""}
    return schema.Decision(**known | fields, nodes=nodes)


def scored(total: int) -> schema.NodeResult:
    return schema.NodeResult(total=total, plugins={"Fit": total}, raw={"Fit": total}, normalized={"Fit": total})


def refused(plugin: str) -> schema.NodeResult:
    return schema.NodeResult(rejected=schema.Rejected.of(Rejection((f"no {plugin}",), plugin=plugin)))


def read(found: dict[str, str], name: str) -> Any:
    return json.loads(found[PREFIX + name])


def test_a_decision_of_the_scheduler() -> None:
    """Filters that passed and refused, scores as texts, the node, and what bound the pod."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("small", cpu="2"))
        world.cluster.add(make_node("large", cpu="8"))
        world.cluster.add(make_node("tiny", cpu="100m"))
        world.cluster.add(make_pod("p", cpu="1", memory="1Gi"))
        world.run_until_idle()
        assert world.decisions is not None
        plugins = Plugins.of(world.core.profiles["default-scheduler"])
        found = annotations(world.decisions.decision(next(iter(world.decisions))), plugins)
    assert found[PREFIX + "selected-node"] == "large"
    assert read(found, "bind-result") == {"DefaultBinder": "success"}
    assert read(found, "prefilter-result-status")["NodeResourcesFit"] == "success"
    filters = read(found, "filter-result")
    assert filters["large"]["NodeResourcesFit"] == filters["tiny"]["TaintToleration"] == "passed"
    assert filters["tiny"]["NodeResourcesFit"] == "Insufficient cpu"
    assert "VolumeBinding" not in filters["large"]
    raw, final = read(found, "score-result"), read(found, "finalscore-result")
    assert set(raw) == set(final) == {"small", "large"}
    assert (raw["large"]["TaintToleration"], final["large"]["TaintToleration"]) == ("0", "300")
    scoring = ("TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation")
    assert read(found, "prescore-result") == dict.fromkeys(scoring, "success")
    assert PREFIX + "reserve-result" not in found
    assert CUT not in found


def test_reserve_and_permit() -> None:
    """Of a pod that was given a node: who reserved something for it, who let it pass, and who had it wait how long."""
    skipped = schema.PreFilter(skipped=("VolumeBinding",))
    binding = schema.Binding("bound", permits={"Gang": 90.0})
    found = annotations(decision({}, preFilter=skipped, binding=binding), PLUGINS)
    assert read(found, "reserve-result") == {"DynamicResources": "success"}
    assert read(found, "permit-result") == {"Quota": "success", "Gang": "wait"}
    assert read(found, "permit-result-timeout") == {"Quota": "0s", "Gang": "1m30s"}
    none = annotations(decision({}, preFilter=skipped), PLUGINS)
    assert not any(name in key for name in ("reserve", "permit") for key in none)


def test_preemption_and_pre_filter() -> None:
    """The node that is made room on, the nodes that were left, and who refused the pod."""
    victims = (schema.Victim("d/low", 1),)
    preemption = schema.Preemption(plugin="DefaultPreemption", nominated="n1", victims=victims)
    narrowed = schema.PreFilter(narrowedTo=("n1", "n2"), narrowedBy=("NodeAffinity",))
    found = annotations(decision({}, preemption=preemption, preFilter=narrowed), PLUGINS)
    assert read(found, "postfilter-result") == {"n1": {"DefaultPreemption": "preemption victim"}}
    assert CUT not in found
    assert read(found, "prefilter-result") == {"NodeAffinity": ["n1", "n2"]}
    rejected = schema.PreFilter(rejected=schema.Rejected("NodeResourcesFit", "Unschedulable", ("never",)))
    found = annotations(decision({}, preFilter=rejected), PLUGINS)
    assert read(found, "prefilter-result-status") == {"NodeAffinity": "success", "NodeResourcesFit": "never"}


def test_what_does_not_fit_is_cut_and_said() -> None:
    """The best nodes are kept, then those that were refused last; never more bytes than there may be."""
    nodes = {f"tainted-{number}": refused("TaintToleration") for number in range(2000)}
    nodes |= {f"full-{number}": refused("NodeResourcesFit") for number in range(2000)}
    nodes |= {f"good-{number}": scored(number) for number in range(300)}
    nodes["best"] = scored(1000)
    for room in (MOST_BYTES, 40_000, 10_000):
        found = annotations(decision(nodes), PLUGINS, room)
        assert room // 2 < sum(len(key) + len(value) for key, value in found.items()) <= room
        kept = list(read(found, "filter-result"))
        assert kept[:3] == ["best", "good-299", "good-298"]
        assert found[CUT] == f"the best and the nearest {len(kept)} of 4301 nodes: all of them would be too large"
    everywhere = list(read(annotations(decision(nodes), PLUGINS), "filter-result"))
    assert sum(name.startswith("good") for name in everywhere) == 300
    assert (
        sum(name.startswith("full") for name in everywhere) == 2000 > sum(name.startswith("t") for name in everywhere)
    )


def test_post_filter_is_given_all_nodes_that_were_refused() -> None:
    """As in kube-scheduler-simulator: the nominated node with who makes room there, others with nothing."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        for name in ("n1", "n2"):
            world.cluster.add(make_node(name, cpu="2"))
        world.cluster.add(make_node("tiny", cpu="100m"))
        world.cluster.add(make_pod("low", cpu="2", node="n2", priority=1))
        world.cluster.add(make_pod("equal", cpu="2", node="n1", priority=9))
        world.cluster.add(make_pod("p", cpu="2", priority=9))
        world.run_until_idle()
        assert world.decisions is not None
        plugins = Plugins.of(world.core.profiles["default-scheduler"])
        first = min(world.decisions, key=lambda record: record.id)
        found = annotations(world.decisions.decision(first), plugins)
    assert read(found, "postfilter-result") == {"n2": {"DefaultPreemption": "preemption victim"}, "n1": {}, "tiny": {}}
    assert set(read(found, "filter-result")) == {"n1", "n2", "tiny"}


def test_post_filter_that_makes_no_room() -> None:
    """The nodes that it was given are told all the same; without PostFilter nothing is."""
    nodes = {"n1": refused("TaintToleration"), "n2": refused("NodeResourcesFit")}
    failed = {"outcome": "unschedulable", "chosen": None}
    found = annotations(decision(nodes, preemption=schema.Preemption("DefaultPreemption", "no"), **failed), PLUGINS)
    assert read(found, "postfilter-result") == {"n1": {}, "n2": {}}
    assert PREFIX + "postfilter-result" not in annotations(decision(nodes, **failed), PLUGINS)


def test_the_node_that_is_made_room_on_is_kept() -> None:
    """However far it was from fitting, and in both annotations."""
    nodes = {f"full-{number}": refused("NodeResourcesFit") for number in range(4000)}
    nodes["n1"] = refused("TaintToleration")
    preemption = schema.Preemption("DefaultPreemption", nominated="n1")
    room = 40_000
    found = annotations(decision(nodes, chosen=None, preemption=preemption), PLUGINS, room)
    assert room // 2 < sum(len(key) + len(value) for key, value in found.items()) <= room
    given = read(found, "postfilter-result")
    assert next(iter(given.items())) == ("n1", {"DefaultPreemption": "preemption victim"})
    assert list(given) == list(read(found, "filter-result"))
    assert found[CUT].startswith(f"the best and the nearest {len(given)} of 4001 nodes")
