"""Decisions as annotations of kube-scheduler-simulator, cut to the size limit."""

import json
from typing import Any

from kubestow.insight.decisions import schema
from kubestow.insight.decisions.annotations import CUT_KEY, MOST_BYTES, PREFIX, Plugins, annotations
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


def rejected_by(plugin: str) -> schema.NodeResult:
    return schema.NodeResult(rejected=schema.Rejected.of(Rejection((f"no {plugin}",), plugin=plugin)))


def read(found: dict[str, str], name: str) -> Any:
    return json.loads(found[PREFIX + name])


def test_a_decision_of_the_scheduler() -> None:
    """Results of filters, scores as texts, the node, and the plugin that bound the pod."""
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
    scoring = ("TaintToleration", "NodeResourcesFit", "VolumeBinding", "NodeResourcesBalancedAllocation")
    assert read(found, "prescore-result") == dict.fromkeys(scoring, "success")
    assert PREFIX + "reserve-result" not in found
    assert CUT_KEY not in found


def test_reserve_and_permit() -> None:
    """A scheduled pod has the results of Reserve and Permit plugins, with timeouts of those that made it wait."""
    skipped = schema.PreFilter(skipped=("VolumeBinding",))
    binding = schema.Binding("bound", permits={"Gang": 90.0})
    found = annotations(decision({}, preFilter=skipped, binding=binding), PLUGINS)
    assert read(found, "reserve-result") == {"DynamicResources": "success"}
    assert read(found, "permit-result") == {"Quota": "success", "Gang": "wait"}
    assert read(found, "permit-result-timeout") == {"Quota": "0s", "Gang": "1m30s"}
    none = annotations(decision({}, preFilter=skipped), PLUGINS)
    assert not any(name in key for name in ("reserve", "permit") for key in none)


def test_preemption_and_pre_filter() -> None:
    """The annotations have the nominated node, the nodes that PreFilter left, and the plugin that rejected the pod."""
    victims = (schema.Victim("d/low", 1),)
    preemption = schema.Preemption(plugin="DefaultPreemption", nominated="n1", victims=victims)
    narrowed = schema.PreFilter(narrowedTo=("n1", "n2"), narrowedBy=("NodeAffinity",))
    found = annotations(decision({}, preemption=preemption, preFilter=narrowed), PLUGINS)
    assert read(found, "postfilter-result") == {"n1": {"DefaultPreemption": "preemption victim"}}
    assert CUT_KEY not in found
    assert read(found, "prefilter-result") == {"NodeAffinity": ["n1", "n2"]}
    rejected = schema.PreFilter(rejected=schema.Rejected("NodeResourcesFit", "Unschedulable", ("never",)))
    found = annotations(decision({}, preFilter=rejected), PLUGINS)
    assert read(found, "prefilter-result-status") == {"NodeAffinity": "success", "NodeResourcesFit": "never"}


def test_results_above_the_size_limit_are_cut() -> None:
    """The best nodes are kept, then those that passed the most filters; the size stays within the limit."""
    nodes = {f"tainted-{number}": rejected_by("TaintToleration") for number in range(2000)}
    nodes |= {f"full-{number}": rejected_by("NodeResourcesFit") for number in range(2000)}
    nodes |= {f"good-{number}": scored(number) for number in range(300)}
    nodes["best"] = scored(1000)
    for limit in (MOST_BYTES, 40_000, 10_000):
        found = annotations(decision(nodes), PLUGINS, limit)
        assert limit // 2 < sum(len(key) + len(value) for key, value in found.items()) <= limit
        kept = list(read(found, "filter-result"))
        assert kept[:3] == ["best", "good-299", "good-298"]
        assert found[CUT_KEY] == f"the {len(kept)} best of 4301 nodes; the results of all nodes exceed the size limit"
    everywhere = list(read(annotations(decision(nodes), PLUGINS), "filter-result"))
    assert sum(name.startswith("good") for name in everywhere) == 300
    assert (
        sum(name.startswith("full") for name in everywhere) == 2000 > sum(name.startswith("t") for name in everywhere)
    )


def test_post_filter_results_have_all_rejected_nodes() -> None:
    """As in kube-scheduler-simulator, the nominated node has the plugin's result, and other nodes have none."""
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


def test_post_filter_without_a_nomination() -> None:
    """The rejected nodes are listed, too; without PostFilter there is no annotation."""
    nodes = {"n1": rejected_by("TaintToleration"), "n2": rejected_by("NodeResourcesFit")}
    failed = {"outcome": "unschedulable", "chosen": None}
    found = annotations(decision(nodes, preemption=schema.Preemption("DefaultPreemption", "no"), **failed), PLUGINS)
    assert read(found, "postfilter-result") == {"n1": {}, "n2": {}}
    assert PREFIX + "postfilter-result" not in annotations(decision(nodes, **failed), PLUGINS)


def test_the_nominated_node_is_kept() -> None:
    """It is kept however few filters it passed, and in both annotations."""
    nodes = {f"full-{number}": rejected_by("NodeResourcesFit") for number in range(4000)}
    nodes["n1"] = rejected_by("TaintToleration")
    preemption = schema.Preemption("DefaultPreemption", nominated="n1")
    limit = 40_000
    found = annotations(decision(nodes, chosen=None, preemption=preemption), PLUGINS, limit)
    assert limit // 2 < sum(len(key) + len(value) for key, value in found.items()) <= limit
    given = read(found, "postfilter-result")
    assert next(iter(given.items())) == ("n1", {"DefaultPreemption": "preemption victim"})
    assert list(given) == list(read(found, "filter-result"))
    assert found[CUT_KEY].startswith(f"the {len(given)} best of 4001 nodes")
