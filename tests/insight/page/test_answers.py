"""The responses of the API: the documented fields, and correct values."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kubestow import config
from kubestow.insight.decisions.pages import DecisionPages
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.page.pages import Site
from kubestow.server.http.messages import Request, Response
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group
from support.insight.page_harness import API, PageHarness, Reader, ask, served
from support.repository import ROOT

PAGE = ROOT / "docs/reference/web-api.md"
ZONE = "topology.kubernetes.io/zone"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: tried}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "CPU"}}}]
"""


@pytest.fixture(scope="module")
def page() -> Iterator[PageHarness]:
    """Return a page with two nodes, a running pod, a pod that is too large, and a gated one."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        world.cluster.add(make_node("n1", cpu="2", memory="4Gi", labels={ZONE: "a"}))
        world.cluster.add(make_node("n2", cpu="4", memory="4Gi", labels={ZONE: "b"}))
        page.make_moment()
        world.run_for(10.0)
        world.cluster.add(make_pod("small", cpu="1", memory="1Gi", priority=7))
        world.cluster.add(make_pod("big", cpu="8"))
        world.cluster.add(make_pod("held", cpu="1", gates=("wait",)))
        world.run_until_idle()
        page.make_moment()
        yield page


@pytest.fixture(scope="module")
def site(page: PageHarness) -> Site:
    return page.site()


def documented(title: str) -> Any:
    """Return the example below a title of the docs page."""
    text = PAGE.read_text()
    section = text[text.index(f"\n## {title}") :]
    found = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def shape(tree: Any) -> Any:
    """Return the fields of a response; rows of tables and keys that are names are data."""
    if not isinstance(tree, dict):
        return type(tree) if not isinstance(tree, int | float) else float
    by_name = {"requested", "allocatable", "labels", "scores", "raw", "plugins", "by", "points", "decision"}
    return {key: shape(value) if key not in by_name else dict for key, value in tree.items()}


@pytest.mark.parametrize(
    ("title", "path"),
    [
        ("About", ""),
        ("Cluster", "/cluster"),
        ("One node", "/nodes/n1"),
        ("Queue", "/queue"),
        ("One decision", "/decisions/default/small"),
        ("What would help", "/explain/default/big"),
        ("Pod groups", "/groups"),
        ("Time", "/times"),
        ("Configuration", "/configuration"),
        ("Search", "/search?q=n"),
    ],
)
def test_responses_have_the_documented_fields(site: Site, title: str, path: str) -> None:
    """They have all documented fields, of the documented types, and no others."""
    (found,) = ask(site, path)
    example = documented(title)
    if example.get("matrix") == {}:
        example["matrix"] = documented("One decision")["matrix"]
    assert shape(found) == shape(example)
    assert found.get("columns") == example.get("columns")


@pytest.mark.parametrize("query", ["", "?limit=1", "?outcome=scheduled&nodes=true", "?refusedNode=n1", "?plugin=None"])
def test_decisions_are_those_of_the_debug_page_byte_for_byte(page: PageHarness, site: Site, query: str) -> None:
    """The API and /debug/decisions, which `kubestow explain` reads, return the same bytes."""
    answers = [
        DecisionPages(page.archive).answer(Request("GET", f"/debug/decisions{query}".encode(), {}, b"")),
        site.answer(Request("GET", f"{API}/decisions{query}".encode(), {}, b"")),
    ]
    debug, api = (answer.body for answer in answers if isinstance(answer, Response))
    assert debug == api


def test_explanations_are_those_of_the_command(page: PageHarness, site: Site) -> None:
    """An explanation has the fields of `kubestow explain -o json`, with the nodes as a matrix."""
    (found,) = ask(site, "/explain/default/big")
    bench = page.run.bench
    assert bench is not None
    world = bench.scene().world()
    pod = world.pod("default", "big")
    assert pod is not None
    printed = json.loads(json.dumps(explained(DryRun(world, world.remove_for_scheduling(pod))).tree()))
    nodes = printed.pop("nodes")
    assert set(found["matrix"]["nodes"]) == set(nodes)
    beside = {name: printed.pop(name) for name in ("source", "wouldFitIf")}
    assert beside == {name: found[name] for name in beside}
    assert printed == found["decision"]


def test_the_cluster_has_columns(site: Site) -> None:
    """All columns have the same length."""
    (found,) = ask(site, "/cluster")
    assert found["names"] == ["n1", "n2"]
    assert found["allocatable"]["cpu"] == [2000, 4000]
    assert sum(found["requested"]["cpu"]) == 1000
    assert sum(found["pods"]) == 1
    assert found["labels"][ZONE] == {"values": ["", "a", "b"], "of": [1, 2]}


def test_a_node_has_its_pods_and_rejections(site: Site) -> None:
    """Pods have requests and priorities, rejections have reasons."""
    (decision,) = ask(site, "/decisions/default/small")
    (node,) = ask(site, f"/nodes/{decision['decision']['chosen']}")
    ((_uid, pod, priority, requests),) = node["pods"]["rows"]
    assert (pod, priority, requests["cpu"]) == ("default/small", 7, 1000)
    (refusal,) = node["refusals"]
    assert (refusal["plugin"], refusal["reasons"]) == ("NodeResourcesFit", ["Insufficient cpu"])
    assert (refusal["count"], refusal["pods"]) == (1, ["default/big"])


def test_the_queue_has_state_reason_and_retry(site: Site) -> None:
    """An unschedulable pod is retried after at most five minutes, a gated one never."""
    (found,) = ask(site, "/queue")
    rows = {row[1]: dict(zip(found["columns"], row, strict=True)) for row in found["rows"]}
    big, held = rows["default/big"], rows["default/held"]
    assert (big["state"], big["plugins"], big["attempts"]) == ("unschedulable", ["NodeResourcesFit"], 1)
    assert found["reasons"][big["reason"]].startswith("0/2 nodes are available: 2 Insufficient cpu")
    assert big["retry"] == pytest.approx(big["since"] + 300.0)
    assert (held["state"], held["plugins"], held["retry"]) == ("gated", ["SchedulingGates"], None)
    assert found["counts"] == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1, "inFlight": 0, "waiting": 0}


def test_one_pod_of_the_queue(site: Site) -> None:
    """It is found by its UID."""
    (queue,) = ask(site, "/queue")
    row = next(row for row in queue["rows"] if row[1] == "default/big")
    (found,) = ask(site, f"/queue/{row[0]}")
    assert found["row"][:9] == row[:9]


def test_a_matrix_has_rejections_by_reason_and_scores_by_plugin(site: Site) -> None:
    """The total is the sum of the scores; the chosen node is first, and has a higher score than the runner-up."""
    rejected, scored = ask(site, "/decisions/default/big", "/decisions/default/small")
    assert rejected["matrix"]["refusal"] == [0, 0]
    (reason,) = rejected["matrix"]["refusals"]
    assert (reason["plugin"], reason["count"]) == ("NodeResourcesFit", 2)
    matrix, second = scored["matrix"], scored["runnerUp"]
    assert matrix["nodes"] == [scored["decision"]["chosen"], second["node"]]
    assert [sum(scores) for scores in zip(*matrix["scores"].values(), strict=True)] == matrix["total"]
    assert second["behind"] == matrix["total"][0] - matrix["total"][1] == sum(second["by"].values())


def test_decisions_are_those_of_the_debug_page(site: Site, page: PageHarness) -> None:
    """The same list, with the same parameters."""
    everything, rejected = ask(site, "/decisions", "/decisions?outcome=unschedulable&nodes=true")
    assert [item["pod"] for item in everything["items"]] == ["default/big", "default/small"]
    assert set(rejected["items"][0]["nodes"]) == {"n1", "n2"}


def test_the_time_before_the_pods_were_added(site: Site, page: PageHarness) -> None:
    """The cluster, the queue and the decisions are those of the requested time."""
    at = f"?at={page.history.begin + 1}"
    cluster, queue, decisions = ask(site, f"/cluster{at}", f"/queue{at}", f"/decisions{at}")
    assert (sum(cluster["pods"]), sum(cluster["requested"]["cpu"])) == (0, 0)
    assert (queue["rows"], decisions["items"]) == ([], [])


def test_a_dry_run_creates_nothing(site: Site, page: PageHarness) -> None:
    """The response has the node, or for an unschedulable pod the changes that would help."""

    async def read(reader: Reader) -> list[Any]:
        return [await reader.get(f"{API}/try", "POST", POD.replace("CPU", cpu)) for cpu in ("2", "6")]

    fits, fails = served(site, read)
    (one,), (other,) = fits.tree["items"], fails.tree["items"]
    assert one["decision"]["chosen"] == "n2"
    assert other["decision"]["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert any(change["opens"] == 1 for change in other["wouldFitIf"])
    (queue, cluster) = ask(site, "/queue", "/cluster")
    assert sum(cluster["pods"]) == 1
    assert len(queue["rows"]) == 2


def test_another_configuration_is_compared(site: Site) -> None:
    """The response has the pods that would get another node, by the plugin that makes the difference."""
    packing = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""

    async def read(reader: Reader) -> Any:
        return (await reader.get(f"{API}/compare", "POST", packing)).tree

    found = served(site, read)
    assert shape(found) == shape(documented("Compare"))
    (group,) = found["groups"]
    assert (found["moved"], group["kind"], group["plugin"]) == (1, "score", "NodeResourcesFit")
    assert (group["pods"][0]["pod"], group["pods"][0]["a"], group["pods"][0]["b"]) == ("default/small", "n2", "n1")


def test_searching(site: Site) -> None:
    """It finds pending and running pods, nodes, plugins and reasons, and ignores case."""
    small, node, plugin, reason = ask(site, "/search?q=SMALL", "/search?q=n2", "/search?q=fit", "/search?q=insuff")
    assert small["pods"] == [{"pod": "default/small", "state": "placed", "node": "n2"}]
    assert node["nodes"] == ["n2"]
    assert plugin["plugins"] == ["NodeResourcesFit"]
    assert reason["reasons"][0]["count"] == 1


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/nowhere", 404, "there is no page"),
        ("/nodes/none", 404, "there is no node none"),
        ("/nodes", 404, "nodes/NAME"),
        ("/queue/none", 404, "in the queue"),
        ("/decisions/default/none", 404, "no decision about pod default/none is recorded"),
        ("/decisions/default/big?id=99", 404, "attempt 99"),
        ("/decisions?outcome=odd", 400, "outcome"),
        ("/decisions?watch=true", 400, "limit, nodes, run, at"),
        ("/cluster?at=yesterday", 400, "at: must be a number"),
        ("/cluster?at=1", 404, "at: there is no history before"),
        ("/cluster?run=1", 400, "run: must be a number from 0 to 0"),
        ("/times?points=0", 400, "points"),
        ("/search", 400, "q: must not be empty"),
        ("/compare", 404, "kubestow view A B"),
        ("/explain/default/none", 404, "there is no pod"),
        ("/explain/default/big?against=none", 400, "there is no node none"),
        ("/groups/default/none", 404, "there is no pod group"),
    ],
)
def test_requests_that_cannot_be_answered_are_rejected(site: Site, path: str, status: int, message: str) -> None:
    """The response is a Status with the reason."""

    async def read(reader: Reader) -> Any:
        return await reader.get(API + path)

    answer = served(site, read)
    assert (answer.status, answer.tree["kind"]) == (status, "Status")
    assert message in answer.tree["message"]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/try", "", "the body is empty"),
        ("/try", "kind: Pod\n- odd", "line 2"),
        ("/try", "apiVersion: v1\nkind: Service\nmetadata: {name: s}", "only pods can be explained"),
        ("/try", POD.replace('"CPU"', "[]"), "line 2: Pod tried: not a valid Pod"),
        ("/compare", "kind: Odd", "kind"),
        ("/compare?pods=many", "kind: Odd", "pods: must be a number"),
    ],
)
def test_invalid_bodies_are_rejected(site: Site, path: str, body: str, message: str) -> None:
    """The message has the problem and its place."""

    async def read(reader: Reader) -> Any:
        return await reader.get(API + path, "POST", body)

    answer = served(site, read)
    assert answer.status == 400
    assert message in answer.tree["message"]


def test_pod_groups() -> None:
    """Groups have the numbers of pending and scheduled pods; an unschedulable gang has its decision and suggestions."""
    gates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
    features = config.Features.parse(gates)
    with SchedulerHarness(record_bytes=1 << 24, features=features) as world:
        page = PageHarness(world, features=features)
        world.cluster.add(make_node("n1", cpu="4"))
        world.cluster.add(make_pod_group("fits", 2))
        world.cluster.add(make_pod_group("large", 3))
        for number in range(3):
            world.cluster.add(make_pod(f"large-{number}", cpu="3", group="large"))
        for number in range(2):
            world.cluster.add(make_pod(f"fits-{number}", cpu="500m", group="fits"))
        world.run_for(20.0)
        page.make_moment()
        table, large = ask(page.site(), "/groups", "/groups/default/large")
    assert table["rows"] == [["default/fits", 2, 0, 2, ["n1"]], ["default/large", 3, 3, 0, []]]
    assert (large["source"], large["decision"]["podGroup"]) == ("scheduler", "default/large")
    assert large["decision"]["outcome"] == "unschedulable"
    assert large["wouldFitIf"]


def test_nodes_are_in_natural_order() -> None:
    """Node n2 is before n10 in a matrix, in a suggestion, and in the results of a search."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        names = [f"n{number}" for number in range(2, 14)]
        page.add_objects(world, *(make_node(name, cpu="2") for name in sorted(names)), make_pod("big", cpu="4"))
        decision, explained, found = ask(page.site(), "/decisions/default/big", "/explain/default/big", "/search?q=n")
        assert decision["matrix"]["nodes"] == names
        assert [change["nodes"] for change in explained["wouldFitIf"][:2]] == [names[:5], names[:1]]
        assert found["nodes"] == names


def test_pending_pods_are_grouped_by_owner_and_cause(site: Site) -> None:
    """Like the overview of `kubestow explain`; of one owner if it is given."""
    found, every, other = ask(site, "/pending?owner=Pod+default/big", "/pending", "/pending?namespace=other")
    assert found.keys() == documented("Pending pods by owner").keys()
    (group,) = found["groups"]
    assert (group["owner"], group["cause"]) == ("Pod default/big", "2 Insufficient cpu")
    assert group["remedy"]["change"] == "request of cpu lowered from 8 to 3"
    assert {one["owner"] for one in every["groups"]} == {"Pod default/big", "Pod default/held"}
    assert other["groups"] == []
