"""`kubestow explain` without a cluster: pods in files, and pods of a dump."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cli.explain_files import Files, node, pod, refused, run_explain


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Two nodes of different size, the smaller one nearly full."""
    return Files(tmp_path, node("big", "8"), node("small", "2"), pod("there", "1500m", nodeName="small"))


def test_a_pod_that_fits_is_shown_with_its_scores(files: Files) -> None:
    """Where it would go, who refused the others, and what each plugin gave the best."""
    done = files.explain_pod(pod("web", "1"))
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Pod default/web would go to big.\n  It is the only feasible one of 2 nodes.\n")
    assert "       1  NodeResourcesFit: Insufficient cpu\n          small\n" in done.output
    assert "  TaintToleration (x3)                   300\n" in done.output
    assert done.output.splitlines()[-1].split() == ["total", "463"]


def test_changes_that_would_help_a_pod_that_fits_nowhere_are_shown(files: Files) -> None:
    """In kube-scheduler's words, and then what could be changed."""
    done = files.explain_pod(pod("web", "9"))
    assert (
        "Pod default/web would fit nowhere on 2 nodes.\n  0/2 nodes are available: 2 Insufficient cpu.\n" in done.output
    )
    assert "  pod      request of cpu lowered from 9 to 8\n           opens 1 node: big\n" in done.output
    assert done.output.endswith("  node     1 more cpu on node big\n           opens 1 node: big\n")


def test_json_has_the_documented_form(files: Files) -> None:
    """A decision, and more beside."""
    decision = json.loads(files.explain_pod(pod("web", "9"), "-o", "json").output)
    assert {field: decision[field] for field in ("version", "pod", "outcome", "chosen", "source")} == {
        "version": 1,
        "pod": "default/web",
        "outcome": "unschedulable",
        "chosen": None,
        "source": "dry run",
    }
    assert decision["nodes"]["small"] == {
        "rejected": {
            "plugin": "NodeResourcesFit",
            "code": "UnschedulableAndUnresolvable",
            "reasons": ["Insufficient cpu"],
        }
    }
    (command,) = decision["wouldFitIf"][0].pop("commands")
    assert command.startswith("kubectl get pod web -n default -o json | kubectl patch --local -f - ")
    assert decision["wouldFitIf"][0] == {
        "side": "pod",
        "change": "request of cpu lowered from 9 to 8",
        "opens": 1,
        "nodes": ["big"],
    }


def test_yaml_says_the_same_as_json(files: Files) -> None:
    """Value by value, the time of the question aside."""
    both = [files.explain_pod(pod("web"), "-o", form).output for form in ("json", "yaml")]
    found = [json.loads(both[0]), yaml.safe_load(both[1])]
    for decision in found:
        del decision["time"]
    assert found[0] == found[1]


def test_pods_are_tried_one_after_the_other(files: Files) -> None:
    """Each is where it would go when the next is tried."""
    several = {"apiVersion": "v1", "kind": "List", "items": [pod(f"web-{number}", "5") for number in range(2)]}
    decision = json.loads(files.explain_pod(several, "-o", "json").output)
    assert [one["chosen"] for one in decision["items"]] == ["big", None]


def test_pods_whose_names_are_made_up_are_several(files: Files) -> None:
    """Each gets a name of its own; of pods that have the same name the second would not be created."""
    nameless = {**pod("web"), "metadata": {"generateName": "web-"}}
    path = files.write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [nameless, nameless, nameless]})
    decision = json.loads(files.explain("-f", path, "-o", "json").output)
    assert [one["pod"] for one in decision["items"]] == ["default/web-xxxxx", "default/web-xxxx1", "default/web-xxxx2"]
    long = {**pod("web"), "metadata": {"generateName": "w" * 300}}
    assert json.loads(files.explain_pod(long, "-o", "json").output)["pod"] == f"default/{'w' * 58}xxxxx"
    path = files.write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [pod("web"), pod("web")]})
    (line,) = refused("-f", path, "--cluster", files.cluster)
    assert line.endswith("Pod default/web: an earlier pod has the same name")


def test_fields_that_there_are_not_are_refused_beside_pods_too(files: Files) -> None:
    """Else a claim would ask for nothing."""
    api, request = "resource.k8s.io/v1", {"name": "gpu", "exact": {"deviceClassName": "gpu"}}
    spec = {"devices": {"requests": [request]}}
    claim = {"apiVersion": api, "kind": "ResourceClaim", "metadata": {"name": "gpus"}, "spec": spec}
    path = files.write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [claim, pod("web")]})
    (line,) = refused("-f", path, "--cluster", files.cluster)
    assert line.endswith("ResourceClaim gpus: unknown field spec.devices.requests[0].exact")


def test_a_pod_need_not_have_what_does_not_matter_to_where_it_goes(files: Files) -> None:
    """A dry run takes less than an API server would: no image, no name of the container, no container at all."""
    for spec in ({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, {}):
        path = files.write("pod.json", {**pod("web"), "spec": spec})
        assert json.loads(files.explain("-f", path, "-o", "json").output)["outcome"] == "scheduled"


def test_what_comes_with_a_pod_is_there_when_it_is_tried(files: Files) -> None:
    """A claim in the same file, for example; what the scheduler does not look at is passed over."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    service = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}}
    alone = json.loads(files.explain_pod(pod("web", volumes=[volume]), "-o", "json").output)
    assert 'persistentvolumeclaim "data" not found' in alone["message"]
    together = {"apiVersion": "v1", "kind": "List", "items": [service, pod("web", volumes=[volume]), claim]}
    decision = json.loads(files.explain_pod(together, "-o", "json").output)
    assert "pod has unbound immediate PersistentVolumeClaims" in decision["message"]


def test_a_pod_of_the_dump_is_explained_by_name(files: Files) -> None:
    """A bound one as if it were scheduled now, which is said."""
    done = files.explain("default/there")
    assert done.output.startswith("Pod default/there would go to big.\n")
    assert "Note: it is on node small already; this is where it would go" in done.output
    for name in ("there", "pod/there"):
        assert files.explain(name).output == done.output


def test_a_pod_that_has_finished_is_explained_as_if_it_had_not(tmp_path: Path) -> None:
    """It is there, it takes no room, and it is not bound to go where it was."""
    done = {**pod("job", "3", nodeName="a"), "status": {"phase": "Succeeded"}}
    files = Files(tmp_path, node("a", "4"), node("b", "8"), done)
    output = " ".join(files.explain("job").output.split())
    assert output.startswith("Pod default/job would go to b. 2 of 2 nodes are feasible, and it scores highest.")
    assert "Note: it has finished on node a; this is where it would go if it were scheduled now." in output


def test_a_manifest_is_tried_in_the_place_of_the_pod_that_has_its_name(tmp_path: Path) -> None:
    """There is room for one of them, and there cannot be both."""
    there = pod("web", "3", nodeName="a")
    there["metadata"]["uid"] = "0001"
    files = Files(tmp_path, node("a", "4"), there)
    done = files.explain_pod(pod("web", "4"))
    assert done.output.startswith("Pod default/web would go to a.\n")
    assert " ".join(done.output.split()).endswith(
        "Note: a pod with this name is on node a; this pod is tried in its place."
    )
    assert "would fit nowhere" in files.explain_pod(pod("other", "4")).output


def test_a_gate_holds_a_pod_back(files: Files) -> None:
    """Though it would fit."""
    done = files.explain_pod(pod("web", schedulingGates=[{"name": "example.com/quota"}]))
    assert done.output.startswith("Pod default/web is held back by SchedulingGates.\n")
    assert "  pod      scheduling gate example.com/quota removed\n           opens 1 node: big\n" in done.output


def test_priority_comes_from_the_class(tmp_path: Path) -> None:
    """As the API server would have it: a pod of high priority makes room."""
    classes: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 100,
    }
    files = Files(tmp_path, node("a", "2"), pod("low", "2", nodeName="a", priority=0), classes)
    done = files.explain_pod(pod("web", "2", priorityClassName="high"))
    assert "evicts pods from a: default/low" in done.output
    assert "  cluster  pods of lower priority removed from node a: default/low\n" in done.output


def test_a_priority_class_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Dumps of pods and nodes have none; those of the system are everywhere."""
    files = Files(tmp_path, node("a", "2"), pod("low", "2", nodeName="a", priority=0))
    decision = json.loads(files.explain_pod(pod("web", "2", priorityClassName="high"), "-o", "json").output)
    assert decision["notes"] == ["priority class high is unknown here; priority 0 is used."]
    decision = json.loads(files.explain_pod(pod("web", priorityClassName="system-node-critical"), "-o", "json").output)
    assert (decision["priority"], decision.get("notes")) == (2_000_001_000, None)


def test_defaults_are_those_of_the_api_server(files: Files) -> None:
    """A container with limits alone asks for as much."""
    manifest = pod("web")
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "9"}}
    assert json.loads(files.explain_pod(manifest, "-o", "json").output)["message"].endswith("2 Insufficient cpu.")


def test_one_node_can_be_asked_about(files: Files) -> None:
    """Why it is refused, or every score of it."""
    assert (
        "  refused by NodeResourcesFit (Unschedulable)\n    Insufficient cpu\n"
        in files.explain_pod(pod("web"), "--node", "small").output
    )
    scores = files.explain_pod(pod("web"), "--node", "big").output
    assert "  is feasible; rank 1 of 1 by score\n" in scores
    assert "  TaintToleration                                0         100         300\n" in scores


def test_nodes_of_the_same_score_have_the_same_rank(tmp_path: Path) -> None:
    """None is behind another for its name."""
    files = Files(tmp_path, node("a"), node("b"), node("c"), node("d", "2"))
    ranks = [
        next(line for line in files.explain_pod(pod("web"), "--node", name).output.splitlines() if "by score" in line)
        for name in ("a", "c", "d")
    ]
    assert ranks == [*["  is feasible; rank 1 of 4 by score, with 2 others"] * 2, "  is feasible; rank 4 of 4 by score"]


def test_one_node_in_json(files: Files) -> None:
    """The others are left out."""
    decision = json.loads(files.explain_pod(pod("web"), "--node", "small", "-o", "json").output)
    assert list(decision["nodes"]) == ["small"]


def test_a_pod_that_no_single_change_helps_is_shown_with_a_combination(files: Files) -> None:
    """For the node that needs the fewest changes."""
    done = files.explain_pod(pod("web", nodeSelector={"disk": "ssd", "rack": "7"}))
    assert done.output.endswith(
        "Would fit if\n  no single change is enough; all of these are, for node big:\n"
        "  - label disk=ssd added to node big\n  - label rack=7 added to node big\n"
    )
    found = json.loads(files.explain_pod(pod("web", nodeSelector={"disk": "ssd", "rack": "7"}), "-o", "json").output)
    changes = ["label disk=ssd added to node big", "label rack=7 added to node big"]
    command = "kubectl label node big --overwrite disk=ssd rack=7"
    assert found["together"] == {"node": "big", "changes": changes, "commands": [command]}


def test_a_pod_that_nothing_helps_is_shown_with_what_is_in_the_way(tmp_path: Path) -> None:
    """No invented change is offered."""
    taken = pod("there", nodeName="only", volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "disk"}}], priority=9)
    files = Files(tmp_path, node("only"), taken)
    ports = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    both = pod("web", nodeName="elsewhere", containers=ports)
    done = files.explain_pod(both)
    assert "In the way\n  - there is no node elsewhere\n" in done.output


def test_a_pod_that_is_refused_as_a_whole_is_not_sent_to_single_nodes(files: Files) -> None:
    """No node is at fault: the claim is named, and creating it helps; --against names the plugin, too."""
    manifest = pod("web", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    output = files.explain_pod(manifest).output
    assert 'In the way\n  - persistentvolumeclaim "data" not found in namespace default: create it\n' in output
    assert "  cluster  claim default/data and a volume for it created: 1Gi, ReadWriteOnce\n" in output
    refused_by = 'it is refused by VolumeRestrictions: persistentvolumeclaim "data" not found\n'
    assert f"To land on big\n  {refused_by}" in files.explain_pod(manifest, "--against", "big").output


def test_a_node_that_was_left_out_says_by_whom(files: Files) -> None:
    """PreFilter leaves nodes out before any is looked at."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["small"]}]}]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    output = files.explain_pod(pod("web", affinity={"nodeAffinity": rule}), "--against", "big").output
    assert (
        "To land on big\n  it is refused by NodeAffinity: node(s) didn't satisfy plugin(s) [NodeAffinity]\n" in output
    )


def test_without_nodes_nothing_is_looked_for(tmp_path: Path) -> None:
    """The file that was given may be the wrong one."""
    files = Files(tmp_path, pod("other"))
    output = " ".join(files.explain_pod(pod("web")).output.split())
    there_are_none = f"no nodes available to schedule pods Note: {files.cluster} has no nodes."
    assert output == f"Pod default/web would fit nowhere. {there_are_none}"


def test_wide_shows_every_node(files: Files) -> None:
    """A row for each, as wide as it takes."""
    lines = files.explain_pod(pod("web"), "-o", "wide").output.splitlines()
    assert "small  NodeResourcesFit  Unschedulable  Insufficient cpu" in lines
    assert any(line.startswith("big   463    ") for line in lines)


def test_what_it_takes_to_land_on_a_node(files: Files) -> None:
    """Single changes, and whether the pod would go there then."""
    done = files.explain_pod(pod("web"), "--against", "small")
    assert "To land on small\n  it is refused by NodeResourcesFit: Insufficient cpu\n" in done.output
    assert (
        "request of cpu lowered from 1 to 500m\n           the node would be feasible, but big scores higher\n"
        in done.output
    )
    pinned = "no single change is enough; all of these are:\n  - 500m more cpu on node small\n  - node selector "
    assert done.output.endswith(f"{pinned}kubernetes.io/hostname=small added\n")


def test_a_node_that_would_be_as_good_as_another_may_be_it(tmp_path: Path) -> None:
    """None of those that score the same is said to score higher."""
    files = Files(tmp_path, node("a"), node("b", taints=[{"key": "t", "effect": "NoSchedule"}]))
    done = files.explain_pod(pod("web"), "--against", "b")
    assert (
        "toleration of t:NoSchedule added\n           it may be placed there: 1 other scores the same\n" in done.output
    )


def test_one_node_and_what_another_takes_are_shown_together(files: Files) -> None:
    """Both were asked for."""
    lines = files.explain_pod(pod("web"), "--node", "big", "--against", "small").output.splitlines()
    assert {"Node big", "To land on small"} < set(lines)


def test_a_dry_run_has_no_queue(files: Files) -> None:
    """What is empty is left out."""
    assert "queue" not in json.loads(files.explain_pod(pod("web"), "-o", "json").output)


def test_a_configuration_decides(files: Files) -> None:
    """With --config, as that scheduler would."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    plugins = {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}
    path = files.write("config.json", {**head, "profiles": [{"plugins": plugins}]})
    assert json.loads(files.explain_pod(pod("web", "9"), "--config", path, "-o", "json").output)["feasible"] == 2


BAD_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {filter: {enabled: [{name: Horoscope}]}}}]
"""


def test_bad_input_is_one_clear_line(files: Files) -> None:
    """A pod that is missing or ambiguous, a file that cannot be read or used, an unknown plugin."""
    twice = Files(files.folder, node("a"), pod("web", namespace="shop"), pod("web", namespace="test"))
    good, bad = twice.write("pod.json", pod("x")), twice.write("bad.yaml", BAD_CONFIG)
    odd = twice.write(
        "odd.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: much}}\n"
    )
    other: dict[str, Any] = {**pod("web"), "kind": "Deployment", "apiVersion": "apps/v1"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pinned = twice.write("pinned.json", pod("x", affinity={"nodeAffinity": rule}))
    cluster = ("--cluster", twice.cluster)
    for arguments, said in (
        (("shop/db", *cluster), "there is no pod shop/db"),
        (("db", *cluster), "no namespace has a pod db"),
        (("web", *cluster), "pod web is ambiguous: choose one of shop/web, test/web"),
        (("shop/web", "-n", "test", *cluster), "'shop/web' is not in the namespace that --namespace names, test"),
        (("a/b/c", *cluster), "'a/b/c' does not name a pod: write NAMESPACE/POD, or POD and --namespace"),
        (("shop/web", "--cluster", "none.json"), "none.json: cannot be read: No such file or directory"),
        (("-f", "none.yaml", *cluster), "none.yaml: cannot be read: No such file or directory"),
        (("-f", good, "--cluster", odd), f"{odd}: line 1: Node a: status.allocatable.cpu: quantity 'much': not"),
        (("-f", good, *cluster, "--config", bad), f"{bad}: profiles[0].plugins.filter.enabled[0]: "),
        (
            ("-f", twice.write("d.json", other), *cluster),
            f"{files.folder}/d.json: Deployment default/web: is not a pod",
        ),
        (("shop/web", *cluster, "--against", "b"), "there is no node b"),
        (("shop/web", *cluster, "--node", "b"), "there is no node b"),
        (("-f", pinned, *cluster, "--node", "b"), "there is no node b"),
        (("shop/web", "--kubeconfig", "none"), "none: no such file"),
        (("web", "--certificate-authority", "none"), "command line: certificate-authority: cannot read none: No such"),
        (("web", "--certificate-authority", bad), "command line: certificate-authority: not a PEM certificate: "),
    ):
        (line,) = refused(*arguments)
        assert line.startswith(f"Error: {said}"), line


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("x", "not a valid Pod: Expected `object`, got `str` - at `$.spec`"),
        ({"containers": [7]}, "not a valid Pod: Expected `object`, got `int` - at `$.spec.containers[0]`"),
        ({"priority": "high"}, "not a valid Pod: Expected `int | null`, got `str` - at `$.spec.priority`"),
        ({"containers": [{"resources": {"requests": {"cpu": "much"}}}]}, "quantity 'much': not a number with"),
        ({"overhead": {"cpu": "much"}}, 'spec.overhead.cpu: must be a quantity such as 100m or 2Gi, not "much"'),
        ({"nodeSelecto": {"disk": "ssd"}}, "Pod default/web: unknown field spec.nodeSelecto"),
        ({"containers": [{"env": [7]}]}, "Pod default/web: spec.containers[0].env[0]: must be an object, not 7"),
        (
            pod("web", tolerations=[{"key": "a", "operator": "Equals"}])["spec"],
            'Pod default/web: spec.tolerations[0].operator: Unsupported value: "Equals": supported values: "Equal", ',
        ),
    ],
)
def test_a_pod_that_makes_no_sense_is_one_clear_line(files: Files, spec: Any, said: str) -> None:
    """With the field, or what is written there."""
    path = files.write("pod.json", {**pod("web"), "spec": spec})
    (line,) = refused("-f", path, "--cluster", files.cluster)
    assert said in line


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"name": "pöd"}, 'metadata.name: Invalid value: "pöd": a lowercase RFC 1123 subdomain must'),
        ({"generateName": "Web-"}, 'metadata.name: Invalid value: "Web-xxxxx": a lowercase RFC 1123 subdomain must'),
        ({"name": "web", "namespace": "a.b"}, 'metadata.namespace: Invalid value: "a.b": a lowercase RFC 1123 label'),
        ({"name": "web", "labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
        ({"name": "web", "labels": {"a": "-"}}, 'metadata.labels: Invalid value: "-": a valid label must be'),
    ],
)
def test_a_pod_that_could_not_be_called_so_is_one_clear_line(files: Files, metadata: dict[str, Any], said: str) -> None:
    """Like an API server."""
    path = files.write("pod.json", {**pod("web"), "metadata": metadata})
    (line,) = refused("-f", path, "--cluster", files.cluster)
    assert said in line


def test_a_pod_that_an_api_server_let_in_fails_as_it_does_there(files: Files) -> None:
    """Its plugins cannot judge it; no changes are tried on it."""
    manifest = pod("web", "much")
    manifest["metadata"]["uid"] = "1"
    for options in ((), ("--against", "big")):
        decision = json.loads(files.explain_pod(manifest, "-o", "json", *options).output)
        assert (decision["outcome"], decision["nodes"]) == ("error", {})
        assert "quantity 'much'" in decision["message"]
        assert "wouldFitIf" not in decision


def test_fields_that_are_null_are_not_there(files: Files) -> None:
    """As the API server reads them."""
    manifest = pod("web", affinity=None, tolerations=None, nodeSelector=None, volumes=None)
    manifest["spec"]["containers"][0]["resources"] = {"requests": None, "limits": None}
    assert files.explain_pod(manifest).output.startswith("Pod default/web would go to big.")


def test_a_pod_of_another_scheduler_is_not_judged(files: Files) -> None:
    """No profile schedules it; the configuration of its scheduler can be passed."""
    path = files.write("pod.json", pod("web", schedulerName="other"))
    said = "Error: pod default/web: no profile has schedulerName other; the configuration has"
    (line,) = refused("-f", path, "--cluster", files.cluster)
    assert line == f"{said} default-scheduler; name the configuration of its scheduler with --config"
    configuration = files.write(
        "config.json",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "mine"}],
        },
    )
    (line,) = refused("-f", path, "--cluster", files.cluster, "--config", configuration)
    assert line == f"{said} mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("web", "-f", "pod.yaml"), "name a pod, or give one with -f, not both\n"),
        (("-f", "-", "--cluster", "-"), "standard input (-) can be read only once; name a file instead\n"),
        (("web", "--cluster", "c.json", "--context", "c"), "--context applies to a live cluster, --cluster to files"),
        (
            ("web", "--cluster", "c.json", "--certificate-authority", "ca.pem"),
            "--certificate-authority applies to a live",
        ),
        (("web", "--cluster", "c.json", "--watch"), "--watch needs a live cluster: files do not change\n"),
    ],
)
def test_options_that_contradict_each_other_are_errors_of_usage(arguments: tuple[str, ...], said: str) -> None:
    """None of them is ignored silently, and credentials are not sent to servers that are not verified."""
    done = run_explain(*arguments)
    assert done.exit_code == 2
    assert said in done.output
