"""What the API answers: as documented, and true."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow import config
from kubestow.insight.decisions.pages import DecisionPages
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.page.pages import Site
from kubestow.server.http.messages import Request, Response
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group
from web.looking import API, Looking, Reader, ask, served

PAGE = Path(__file__).parents[2] / "docs/reference/web-api.md"
ZONE = "topology.kubernetes.io/zone"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: tried}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "CPU"}}}]
"""


@pytest.fixture(scope="module")
def looking() -> Iterator[Looking]:
    """Two nodes; a pod on one of them, one that is too large, one that is held back."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world)
        world.cluster.add(make_node("n1", cpu="2", memory="4Gi", labels={ZONE: "a"}))
        world.cluster.add(make_node("n2", cpu="4", memory="4Gi", labels={ZONE: "b"}))
        looking.look()
        world.run_for(10.0)
        world.cluster.add(make_pod("small", cpu="1", memory="1Gi", priority=7))
        world.cluster.add(make_pod("big", cpu="8"))
        world.cluster.add(make_pod("held", cpu="1", gates=("wait",)))
        world.run_until_idle()
        looking.look()
        yield looking


@pytest.fixture(scope="module")
def site(looking: Looking) -> Site:
    return looking.site()


def documented(title: str) -> Any:
    """The example below a title of the page."""
    text = PAGE.read_text()
    section = text[text.index(f"\n## {title}") :]
    found = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def shape(tree: Any) -> Any:
    """The fields of an answer; those inside tables and by name are data."""
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
def test_answers_have_the_documented_fields(site: Site, title: str, path: str) -> None:
    """Each of them, of the documented kind, and no others."""
    (found,) = ask(site, path)
    example = documented(title)
    if example.get("matrix") == {}:
        example["matrix"] = documented("One decision")["matrix"]
    assert shape(found) == shape(example)
    assert found.get("columns") == example.get("columns")


@pytest.mark.parametrize("query", ["", "?limit=1", "?outcome=scheduled&nodes=true", "?refusedNode=n1", "?plugin=None"])
def test_decisions_are_those_that_the_command_reads(looking: Looking, site: Site, query: str) -> None:
    """What `kubestow explain` asks at /debug/decisions, and what the page asks, is answered with the same bytes."""
    answers = [
        DecisionPages(looking.archive).answer(Request("GET", f"/debug/decisions{query}".encode(), {}, b"")),
        site.answer(Request("GET", f"{API}/decisions{query}".encode(), {}, b"")),
    ]
    command, page = (answer.body for answer in answers if isinstance(answer, Response))
    assert command == page


def test_what_would_help_is_what_the_command_says(looking: Looking, site: Site) -> None:
    """An explanation has the fields that `kubestow explain -o json` prints, with the nodes as a matrix."""
    (found,) = ask(site, "/explain/default/big")
    bench = looking.run.bench
    assert bench is not None
    world = bench.scene().world()
    pod = world.pod("default", "big")
    assert pod is not None
    printed = json.loads(json.dumps(explained(DryRun(world, world.take_out(pod))).tree()))
    nodes = printed.pop("nodes")
    assert set(found["matrix"]["nodes"]) == set(nodes)
    beside = {name: printed.pop(name) for name in ("source", "wouldFitIf")}
    assert beside == {name: found[name] for name in beside}
    assert printed == found["decision"]


def test_the_cluster_is_told_in_columns(site: Site) -> None:
    """All of the same length."""
    (found,) = ask(site, "/cluster")
    assert found["names"] == ["n1", "n2"]
    assert found["allocatable"]["cpu"] == [2000, 4000]
    assert sum(found["requested"]["cpu"]) == 1000
    assert sum(found["pods"]) == 1
    assert found["labels"][ZONE] == {"values": ["", "a", "b"], "of": [1, 2]}


def test_a_node_tells_its_pods_and_whom_it_refused(site: Site) -> None:
    """With requests and priorities, and the reason."""
    (decision,) = ask(site, "/decisions/default/small")
    (node,) = ask(site, f"/nodes/{decision['decision']['chosen']}")
    ((_uid, pod, priority, requests),) = node["pods"]["rows"]
    assert (pod, priority, requests["cpu"]) == ("default/small", 7, 1000)
    (refusal,) = node["refusals"]
    assert (refusal["plugin"], refusal["reasons"]) == ("NodeResourcesFit", ["Insufficient cpu"])
    assert (refusal["count"], refusal["pods"]) == (1, ["default/big"])


def test_the_queue_tells_state_reason_and_retry(site: Site) -> None:
    """A pod that fits nowhere waits five minutes at most; one that is held back, for ever."""
    (found,) = ask(site, "/queue")
    rows = {row[1]: dict(zip(found["columns"], row, strict=True)) for row in found["rows"]}
    big, held = rows["default/big"], rows["default/held"]
    assert (big["state"], big["plugins"], big["attempts"]) == ("unschedulable", ["NodeResourcesFit"], 1)
    assert found["reasons"][big["reason"]].startswith("0/2 nodes are available: 2 Insufficient cpu")
    assert big["retry"] == pytest.approx(big["since"] + 300.0)
    assert (held["state"], held["plugins"], held["retry"]) == ("gated", ["SchedulingGates"], None)
    assert found["counts"] == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1, "inFlight": 0, "waiting": 0}


def test_one_pod_of_the_queue(site: Site) -> None:
    """By its uid."""
    (queue,) = ask(site, "/queue")
    row = next(row for row in queue["rows"] if row[1] == "default/big")
    (found,) = ask(site, f"/queue/{row[0]}")
    assert found["row"][:9] == row[:9]


def test_a_matrix_has_refusals_by_reason_and_scores_by_plugin(site: Site) -> None:
    """The sum of the scores is the total; the chosen node comes first, and is ahead of the runner-up."""
    refused, scored = ask(site, "/decisions/default/big", "/decisions/default/small")
    assert refused["matrix"]["refusal"] == [0, 0]
    (reason,) = refused["matrix"]["refusals"]
    assert (reason["plugin"], reason["count"]) == ("NodeResourcesFit", 2)
    matrix, second = scored["matrix"], scored["runnerUp"]
    assert matrix["nodes"] == [scored["decision"]["chosen"], second["node"]]
    assert [sum(scores) for scores in zip(*matrix["scores"].values(), strict=True)] == matrix["total"]
    assert second["behind"] == matrix["total"][0] - matrix["total"][1] == sum(second["by"].values())


def test_decisions_are_those_of_the_debug_page(site: Site, looking: Looking) -> None:
    """The same list, with the same parameters."""
    everything, rejected = ask(site, "/decisions", "/decisions?outcome=unschedulable&nodes=true")
    assert [item["pod"] for item in everything["items"]] == ["default/big", "default/small"]
    assert set(rejected["items"][0]["nodes"]) == {"n1", "n2"}


def test_before_the_pods_came(site: Site, looking: Looking) -> None:
    """The cluster, the queue and the decisions are set back."""
    at = f"?at={looking.history.begin + 1}"
    cluster, queue, decisions = ask(site, f"/cluster{at}", f"/queue{at}", f"/decisions{at}")
    assert (sum(cluster["pods"]), sum(cluster["requested"]["cpu"])) == (0, 0)
    assert (queue["rows"], decisions["items"]) == ([], [])


def test_a_pod_is_tried_and_nothing_is_created(site: Site, looking: Looking) -> None:
    """Where it would go, and for one that fits nowhere what would help."""

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
    """Pods that would go elsewhere, by the plugin whose doing it is."""
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
    """Pods that wait or are placed, nodes, plugins, reasons; whatever the case."""
    small, node, plugin, reason = ask(site, "/search?q=SMALL", "/search?q=n2", "/search?q=fit", "/search?q=insuff")
    assert small["pods"] == [{"pod": "default/small", "state": "placed", "node": "n2"}]
    assert node["nodes"] == ["n2"]
    assert plugin["plugins"] == ["NodeResourcesFit"]
    assert reason["reasons"][0]["count"] == 1


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nowhere", 404, "there is no page"),
        ("/nodes/none", 404, "there is no node none"),
        ("/nodes", 404, "nodes/NAME"),
        ("/queue/none", 404, "in the queue"),
        ("/decisions/default/none", 404, "nothing is known"),
        ("/decisions/default/big?id=99", 404, "attempt 99"),
        ("/decisions?outcome=odd", 400, "outcome"),
        ("/decisions?watch=true", 400, "limit, nodes, run, at"),
        ("/cluster?at=yesterday", 400, "at: must be a number"),
        ("/cluster?at=1", 404, "at: nothing is known"),
        ("/cluster?run=1", 400, "run: must be a number from 0 to 0"),
        ("/times?points=0", 400, "points"),
        ("/search", 400, "q: say"),
        ("/compare", 404, "kubestow view A B"),
        ("/explain/default/none", 404, "there is no pod"),
        ("/explain/default/big?against=none", 400, "there is no node none"),
        ("/groups/default/none", 404, "there is no pod group"),
    ],
)
def test_what_cannot_be_answered_is_refused(site: Site, path: str, status: int, words: str) -> None:
    """With a Status that says why."""

    async def read(reader: Reader) -> Any:
        return await reader.get(API + path)

    answer = served(site, read)
    assert (answer.status, answer.tree["kind"]) == (status, "Status")
    assert words in answer.tree["message"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/try", "", "nothing in the body"),
        ("/try", "kind: Pod\n- odd", "line 2"),
        ("/try", "apiVersion: v1\nkind: Service\nmetadata: {name: s}", "only pods can be explained"),
        ("/try", POD.replace('"CPU"', "[]"), "line 2: Pod tried: not a valid Pod"),
        ("/compare", "kind: Odd", "kind"),
        ("/compare?pods=many", "kind: Odd", "pods: must be a number"),
    ],
)
def test_bad_bodies_are_refused(site: Site, path: str, body: str, words: str) -> None:
    """With what is wrong, and where."""

    async def read(reader: Reader) -> Any:
        return await reader.get(API + path, "POST", body)

    answer = served(site, read)
    assert answer.status == 400
    assert words in answer.tree["message"]


def test_pod_groups_and_what_would_help_them() -> None:
    """How many of their pods wait and have a node; of a gang that does not fit, what was decided and would help."""
    gates = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
    features = config.Features.parse(gates)
    with SchedulerHarness(record_bytes=1 << 24, features=features) as world:
        looking = Looking(world, features=features)
        world.cluster.add(make_node("n1", cpu="4"))
        world.cluster.add(make_pod_group("fits", 2))
        world.cluster.add(make_pod_group("large", 3))
        for number in range(3):
            world.cluster.add(make_pod(f"large-{number}", cpu="3", group="large"))
        for number in range(2):
            world.cluster.add(make_pod(f"fits-{number}", cpu="500m", group="fits"))
        world.run_for(20.0)
        looking.look()
        table, large = ask(looking.site(), "/groups", "/groups/default/large")
    assert table["rows"] == [["default/fits", 2, 0, 2, ["n1"]], ["default/large", 3, 3, 0, []]]
    assert (large["source"], large["decision"]["podGroup"]) == ("scheduler", "default/large")
    assert large["decision"]["outcome"] == "unschedulable"
    assert large["wouldFitIf"]
