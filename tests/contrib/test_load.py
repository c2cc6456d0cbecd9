"""The plugins that score nodes by measured utilization: sources, stale data, unmeasured pods, and arguments."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import ValidationError, convert
from msgspec.structs import replace

from kubestow.contrib.load import LoadVariationRiskBalancing, LowRiskOverCommitment, TargetLoadPacking
from kubestow.contrib.load.beta import regularized
from kubestow.contrib.load.risk import LowRiskOverCommitmentArgs
from kubestow.contrib.load.sources import LoadArgs, MetricProvider, NodeMetric
from kubestow.contrib.load.target import TargetLoadPackingArgs
from kubestow.contrib.load.variation import LoadVariationRiskBalancingArgs
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.detached import FixedClock
from kubestow.scheduler.framework.polling import NoBackground
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod
from support.contrib import configured

NOW = 1_800_000_000.0


def answer(**cpu: float) -> dict[str, Any]:
    """Return an answer of load-watcher with the utilization of CPUs, in percent."""
    nodes = {node: {"metrics": [{"type": "CPU", "operator": "AVG", "value": value}]} for node, value in cpu.items()}
    return {"data": {"NodeMetricsMap": nodes}}


def scheduler(plugin: Any = TargetLoadPacking, **args: Any) -> SchedulerHarness:
    """Return a scheduler with two equal nodes; only the plugin decides between them."""
    text = configured(plugin.name, args, alone=True)
    harness = SchedulerHarness(text, plugins=[plugin])
    for name in ("n1", "n2"):
        harness.cluster.add(make_node(name, cpu=10))
    harness.run_for(0)
    return harness


class Answers(NoBackground):
    """Answers requests by path, and notes what was sent."""

    def __init__(self, **by_text: Any) -> None:
        self.http = self
        self._by_text = by_text
        self.requests: list[tuple[str, Mapping[str, str], str]] = []

    async def get_json(self, url: str, params: Any = None, headers: Any = None, *, ca_file: str = "") -> Any:
        self.requests.append((url, headers or {}, ca_file))
        text = f"{url} {dict(params or {})}"
        return next(found for part, found in self._by_text.items() if part in text)


def fetched(args: LoadArgs, answers: Answers, *objects: Any) -> dict[str, dict[tuple[str, str], float]]:
    """Return what a plugin fetches, by node, type and operator."""
    cluster = Cluster()
    cluster.set_node(make_node("n1", cpu=10, memory="10Gi"))
    for obj in objects:
        cluster.set_object(obj)
    plugin = LoadVariationRiskBalancing(
        LoadVariationRiskBalancingArgs(**{name: getattr(args, name) for name in args.__struct_fields__}),
        offline_handle(cluster, clock=FixedClock(NOW), _background=answers),
    )
    found = asyncio.run(plugin.fetch())
    return {
        node: {(metric.type, metric.operator): metric.value for metric in metrics.metrics}
        for node, metrics in found.by_node.items()
    }


def test_a_pod_goes_to_the_node_whose_load_is_closer_below_the_target() -> None:
    """A node above the target is avoided."""
    with scheduler() as harness:
        harness.set_polled("TargetLoadPacking", answer(n1=10, n2=25))
        harness.cluster.add(make_pod("p", cpu=1))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n2"}
        harness.set_polled("TargetLoadPacking", answer(n1=10, n2=90))
        harness.cluster.add(make_pod("q", cpu=1))
        harness.run_until_idle()
        assert harness.bindings["default/q"] == "n1"


def test_pods_count_until_measurements_include_them() -> None:
    """The load of a new pod is expected to be its limit, or one and a half times its request."""
    with scheduler() as harness:
        harness.set_polled("TargetLoadPacking", answer(n1=0, n2=20))
        for name in ("a", "b", "c"):
            harness.cluster.add(make_pod(name, cpu=1))
            harness.run_until_idle()
        assert harness.bindings == {"default/a": "n2", "default/b": "n1", "default/c": "n1"}


def test_pods_that_ran_before_the_scheduler_started_are_measured_already() -> None:
    """After a restart, no load counts twice."""
    with scheduler() as harness:
        harness.cluster.add(make_pod("old", cpu=2, node="n2", status={"phase": "Running"}))
        harness.run_for(0)
        harness.set_polled("TargetLoadPacking", answer(n1=0, n2=20))
        harness.cluster.add(make_pod("p", cpu=1))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n2"}


@pytest.mark.parametrize("plugin", [TargetLoadPacking, LoadVariationRiskBalancing])
def test_old_measurements_do_not_decide(plugin: Any) -> None:
    """When polls fail for a while, all nodes get the same score."""
    placed = set()
    with scheduler(plugin) as harness:
        harness.set_polled(plugin.name, answer(n1=95, n2=20))
        harness.fail_poll(plugin.name)
        for number in range(10):
            harness.cluster.add(make_pod(f"fresh{number}", cpu="10m"))
        harness.run_until_idle()
        assert set(harness.bindings.values()) == {"n2"}
        harness.run_for(181)
        for number in range(20):
            harness.cluster.add(make_pod(f"late{number}", cpu="10m"))
        harness.run_until_idle()
        placed = {node for pod, node in harness.bindings.items() if "late" in pod}
    assert placed == {"n1", "n2"}


def test_nodes_that_vary_much_are_avoided() -> None:
    """The average is the same."""
    with scheduler(LoadVariationRiskBalancing) as harness:
        varying = answer(n1=40, n2=40)
        metrics = varying["data"]["NodeMetricsMap"]["n1"]["metrics"]
        metrics.append({"type": "CPU", "operator": "STD", "value": 30})
        harness.set_polled("LoadVariationRiskBalancing", varying)
        harness.cluster.add(make_pod("p", cpu=1))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n2"}


@pytest.mark.parametrize(
    ("measured", "chosen"),
    [
        ([("AVG", 10), ("Latest", 90)], "n1"),
        ([("Latest", 10), ("AVG", 90)], "n2"),
        ([("Latest", 90), ("", 10)], "n1"),
        ([("", 10), ("Latest", 90)], "n2"),
        ([("STD", 10)], "n1"),
    ],
)
def test_an_average_counts_before_the_last_of_the_latest_values(measured: list[tuple[str, float]], chosen: str) -> None:
    """A value without an operator is a latest one; without either, the node is not used."""
    with scheduler(LoadVariationRiskBalancing) as harness:
        given = answer(n1=0, n2=50)
        metrics = [{"type": "CPU", "operator": operator, "value": value} for operator, value in measured]
        given["data"]["NodeMetricsMap"]["n1"]["metrics"] = metrics
        harness.set_polled("LoadVariationRiskBalancing", given)
        harness.cluster.add(make_pod("p", cpu=1))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": chosen}


def test_nodes_whose_limits_exceed_their_capacity_are_avoided() -> None:
    """The risk by limits counts even if nothing is used."""
    limited = {"name": "main", "image": "app", "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 20}}}
    with scheduler(LowRiskOverCommitment) as harness:
        harness.cluster.add(make_pod("wide", node="n1", spec={"containers": [limited]}))
        harness.run_for(0)
        harness.set_polled("LowRiskOverCommitment", answer(n1=0, n2=0))
        harness.cluster.add(make_pod("p", cpu=1))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n2"}


def test_without_recorded_measurements_pods_of_a_simulation_use_what_they_request() -> None:
    """Nothing needs to be set up to see the effect of a plugin."""
    with scheduler() as harness:
        harness.cluster.add(make_pod("old", cpu=2, node="n2", status={"phase": "Running"}))
        harness.run_for(60)
        harness.cluster.add(make_pod("p", cpu="100m"))
        harness.run_for(1)
        assert harness.bindings == {"default/p": "n2"}


def test_prometheus_is_asked_for_averages_and_deviations() -> None:
    """The label node names a node; without it, the instance without its port."""

    def samples(*values: tuple[dict[str, str], str]) -> dict[str, Any]:
        return {"data": {"result": [{"metric": labels, "value": [NOW, value]} for labels, value in values]}}

    none = samples()
    answers = Answers(
        **{
            "'avg_over_time(instance:node_cpu": samples(({"node": "n1"}, "0.5"), ({"instance": "n2:9100"}, "0.25")),
            "stddev_over_time(instance:node_cpu": samples(({"node": "n1"}, "0.1"), ({"node": "n3"}, "NaN")),
            "memory": none,
        }
    )
    provider = MetricProvider(type="Prometheus", address="http://prometheus:9090/", token="secret")
    assert fetched(LoadArgs(metricProvider=provider), answers) == {
        "n1": {("CPU", "AVG"): 50, ("CPU", "STD"): 10},
        "n2": {("CPU", "AVG"): 25},
    }
    url, headers, _ = answers.requests[0]
    assert (url, headers) == ("http://prometheus:9090/api/v1/query", {"Authorization": "Bearer secret"})


def test_metrics_server_reports_amounts_that_become_shares_of_the_capacity() -> None:
    """A node that is not known has no capacity, and is left out."""
    items = [{"metadata": {"name": name}, "usage": {"cpu": "2500m", "memory": "5Gi"}} for name in ("n1", "unknown")]
    answers = Answers(**{"/apis/metrics.k8s.io/v1beta1/nodes": {"items": items}})
    provider = MetricProvider(address="https://api:6443", token="secret", caFile="/ca.crt")
    assert fetched(LoadArgs(metricProvider=provider), answers) == {
        "n1": {("CPU", "Latest"): 25, ("Memory", "Latest"): 50},
        "unknown": {},
    }
    assert answers.requests[0][2] == "/ca.crt"


def test_reports_of_koordinator_count_while_they_are_recent() -> None:
    """Each report has its own time; one without a time does not count."""

    def report(node: str, time: str) -> NodeMetric:
        usage = {"nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}}
        return make_object(NodeMetric, node, status={"updateTime": time, "nodeMetric": usage})

    provider = MetricProvider(type="Koordinator")
    reports = report("n1", "2027-01-15T07:59:00Z"), report("n2", "2027-01-15T07:50:00Z"), report("n3", "")
    assert fetched(LoadArgs(metricProvider=provider), Answers(), *reports) == {
        "n1": {("CPU", "Latest"): 10, ("Memory", "Latest"): 10}
    }


def test_a_report_of_koordinator_with_an_invalid_amount_is_refused_by_itself() -> None:
    """It cannot be decoded, so that those of other nodes go on counting."""
    usage = {"nodeUsage": {"resources": {"cpu": "much"}}}
    with pytest.raises(ValidationError, match="quantity 'much'"):
        convert({"metadata": {"name": "n1"}, "status": {"nodeMetric": usage}}, NodeMetric)


def test_outside_of_a_cluster_metrics_server_needs_an_address() -> None:
    with pytest.raises(
        RuntimeError,
        match=r"token does not exist; outside of a cluster, set metricProvider\.address, tokenFile and caFile",
    ):
        fetched(LoadArgs(), Answers())


def test_an_old_answer_of_a_load_watcher_is_refused() -> None:
    """A watcher may go on answering with what it measured long ago."""
    for age in (500, 530):
        old = {"timestamp": NOW - age, **answer(n1=5)}
        # The same message each time, so that it is logged once.
        with pytest.raises(RuntimeError, match=re.escape("measurements are older than staleAfterSeconds (180)")):
            fetched(LoadArgs(watcherAddress="http://watcher:2020"), Answers(watcher=old))
    new = {"timestamp": NOW - 20, **answer(n1=5)}
    assert fetched(LoadArgs(watcherAddress="http://watcher:2020"), Answers(watcher=new)) == {"n1": {("CPU", "AVG"): 5}}


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        (TargetLoadPacking, {"metricProvider": {"type": "SignalFx"}}, 'metricProvider.type: Invalid value: "SignalFx"'),
        (TargetLoadPacking, {"metricProvider": {"type": "Prometheus"}}, "metricProvider.address: Required value"),
        (TargetLoadPacking, {"metricProvider": {"insecureSkipVerify": True}}, "set metricProvider.caFile"),
        (TargetLoadPacking, {"defaultRequestsMultiplier": "x"}, "defaultRequestsMultiplier: Invalid value"),
        (TargetLoadPacking, {"defaultRequestsMultiplier": "nan"}, "defaultRequestsMultiplier: Invalid value"),
        (TargetLoadPacking, {"defaultRequests": {"cpu": "much"}}, "defaultRequests: quantity 'much'"),
        (TargetLoadPacking, {"targetUtilization": 0}, "targetUtilization: Invalid value: 0: must be from 1 to 100"),
        (TargetLoadPacking, {"staleAfterSeconds": 0}, "staleAfterSeconds: Invalid value: 0.0: must be positive"),
        (LoadVariationRiskBalancing, {"safeVarianceMargin": -1}, "safeVarianceMargin: Invalid value: -1"),
        (LowRiskOverCommitment, {"riskLimitWeights": {"cpu": 2}}, "riskLimitWeights[cpu]: Invalid value: 2"),
    ],
)
def test_wrong_arguments_are_refused(plugin: Any, args: dict[str, Any], problem: str) -> None:
    """The message names the field."""
    with pytest.raises(ProfileError) as refused:
        scheduler(plugin, **args)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("x", "a", "b", "expected"),
    [
        (0.3, 1, 1, 0.3),
        (0.5, 2, 2, 0.5),
        (0.25, 2, 3, 0.26171875),
        (0.9, 0.5, 0.5, 0.7951672353008665),
        (0.31, 300, 700, 0.7555),
        (0, 2, 2, 0),
        (1, 2, 2, 1),
    ],
)
def test_the_beta_distribution_has_known_values(x: float, a: float, b: float, expected: float) -> None:
    """Closed forms, the arcsine distribution, and a narrow one that is nearly normal."""
    assert regularized(x, a, b) == pytest.approx(expected, abs=1e-2 if a == 300 else 1e-12)


def test_all_arguments_have_the_defaults_of_scheduler_plugins() -> None:
    """A profile that only names a plugin works."""
    target, variation, risk = TargetLoadPackingArgs(), LoadVariationRiskBalancingArgs(), LowRiskOverCommitmentArgs()
    assert (target.targetUtilization, target.defaultRequestsMultiplier) == (40, "1.5")
    assert (variation.safeVarianceMargin, variation.safeVarianceSensitivity) == (1, 1)
    assert risk.smoothingWindowSize == 5
    assert replace(target, targetUtilization=50).metricProvider.type == "KubernetesMetricsServer"
