"""kubectl works: the commands people type, against a server with controllers and nodes that act."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.apiserver import Pace
from support.apiserver.kubectl import PROBLEM, Kubectl
from support.apiserver.running import Running
from support.repository import ROOT

pytestmark = [pytest.mark.kubectl, pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeName: node-0
      containers: [{name: c, image: "nginx:1", env: [{name: A, value: "1"}]}]
"""


@pytest.fixture
def kubectl(start: Callable[..., Running], tmp_path: Path) -> Kubectl:
    """kubectl for a fresh control plane with two nodes."""
    pace = Pace(start=0, run=0, stop=0)
    return Kubectl(start(controllers=True, kubelets=True, nodes=2, pace=pace), tmp_path)


def test_apply_get_describe_delete(kubectl: Kubectl) -> None:
    """The way of a deployment."""
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=300s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=300s")
    rows = kubectl("get", "deployments", "-o", "wide").splitlines()
    assert rows[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert rows[1].split()[:4] == ["web", "2/2", "2", "2"]
    pods = kubectl("get", "pods", "-A", "-o", "wide", "-l", "app=web", "--field-selector", "status.phase=Running")
    assert [line.split()[3] for line in pods.splitlines()[1:]] == ["Running", "Running"]
    described = kubectl("describe", "pods", "-l", "app=web")
    assert re.search(r"Status:\s+Running", described)
    assert re.search(r"Controlled By:\s+ReplicaSet/web-", described)
    assert kubectl("get", "pods", "-o", "yaml").startswith("apiVersion: v1\nitems:\n")
    assert kubectl("delete", "deployment", "web") == 'deployment.apps "web" deleted\n'
    kubectl("wait", "--for=delete", "pods", "-l", "app=web", "--timeout=300s")


def test_get_watch(kubectl: Kubectl) -> None:
    """-w prints rows as things change."""
    command = ["kubectl", "get", "pods", "-w"]
    watching = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=kubectl.environment
    )
    kubectl("run", "one", "--image=x", "--overrides", '{"spec":{"nodeName":"node-1"}}')
    assert watching.stdout is not None
    for line in watching.stdout:
        if line.split()[:3] == ["one", "1/1", "Running"]:
            break
    watching.kill()
    watching.communicate()


def test_changing_things(kubectl: Kubectl) -> None:
    """patch, label, annotate, set image, scale, rollout undo, diff."""
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    env = '{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"B","value":"2"}]}]}}}}'
    kubectl("patch", "deployment", "web", "-p", env)
    names = kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].env[*].name}")
    assert sorted(names.split()) == ["A", "B"]
    kubectl("patch", "deployment", "web", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/x","value":"y"}]')
    kubectl("label", "deployment", "web", "tier=front", "x-")
    assert kubectl.json("deployment", "web")["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert kubectl("scale", "deployment", "web", "--replicas=3") == "deployment.apps/web scaled\n"
    kubectl("rollout", "status", "deployment/web", "--timeout=300s")
    kubectl("set", "image", "deployment/web", "c=nginx:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=300s")
    assert "REVISION" in kubectl("rollout", "history", "deployment/web")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=300s")
    images = kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert images == "nginx:1"
    diff = kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1", "nginx:9"))
    assert diff.returncode == 1
    assert "+      - image: nginx:9" in diff.stdout or "nginx:9" in diff.stdout


def test_server_side_apply(kubectl: Kubectl) -> None:
    """Another manager's field is a conflict, unless forced."""
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    other = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    said = kubectl.refused("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other)
    assert 'conflict with "kubectl": .spec.replicas' in said
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    assert kubectl.json("deployment", "web")["spec"]["replicas"] == 5


def test_nodes_are_tainted_cordoned_and_drained(kubectl: Kubectl) -> None:
    """Drain evicts, and the budget is honoured."""
    kubectl("taint", "nodes", "node-1", "dedicated=x:NoSchedule")
    kubectl("cordon", "node-1")
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", "node-1")
    kubectl("uncordon", "node-1")
    kubectl("taint", "nodes", "node-1", "dedicated-")
    kubectl("run", "one", "--image=x", "--overrides", '{"spec":{"nodeName":"node-0"}}')
    kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=300s")
    drained = kubectl("drain", "node-0", "--force", "--timeout=300s")
    assert "pod/one evicted" in drained
    assert kubectl("get", "pods") == ""
    assert "unschedulable" in kubectl("describe", "node", "node-0")


def test_making_things_without_manifests(kubectl: Kubectl) -> None:
    """create deployment, job, namespace, configmap, expose."""
    kubectl("create", "deployment", "made", "--image=nginx", "--replicas=2")
    kubectl("create", "namespace", "extra")
    kubectl("create", "configmap", "c", "--from-literal=a=b", "-n", "extra")
    kubectl("create", "job", "j", "--image=x")
    kubectl("expose", "deployment", "made", "--port=80")
    assert kubectl.json("service", "made")["spec"]["ports"][0]["targetPort"] == 80
    assert "deployment.apps/made" in kubectl("get", "all")
    assert kubectl("delete", "namespace", "extra") == 'namespace "extra" deleted\n'
    assert kubectl("create", "token", "default").startswith("kubestow.")


def test_explain_and_discovery(kubectl: Kubectl) -> None:
    """explain reads the schema, api-resources the table."""
    explained = kubectl("explain", "pod.spec")
    assert "KIND:       Pod" in explained
    assert "schedulerName\t<string>\n    Name of the scheduler for this pod." in explained
    assert re.search(r"deployments\s+deploy\s+apps/v1\s+true\s+Deployment", kubectl("api-resources"))
    assert "events.k8s.io/v1" in kubectl("api-versions")
    assert '"gitVersion": "v1.37.0+kubestow"' in kubectl("version", "-o", "json")


GROUPS = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: w}
spec: {podGroupTemplates: [{name: t, schedulingPolicy: {gang: {minCount: 2}}}]}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {gang: {minCount: 2}}, workloadRef: {workloadName: w, templateName: t}}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: c}
spec: {schedulingPolicy: {basic: {}}, workloadRef: {workloadName: w, templateName: t}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: broken, effect: NoSchedule}}
"""


def test_pod_groups_and_taint_rules(kubectl: Kubectl) -> None:
    """They have the columns of Kubernetes v1.37, and can be applied and explained."""
    assert kubectl("apply", "-f", "-", stdin=GROUPS).count(" created\n") == 4
    assert kubectl("apply", "-f", "-", stdin=GROUPS).count(" unchanged\n") == 4
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=GROUPS).count("applied") == 4
    for kind, header, row in (
        ("podgroups", "NAME POLICY WORKLOAD STATUS AGE", "g Gang w Pending"),
        ("podgroups.v1alpha3.scheduling.k8s.io", "NAME POLICY WORKLOAD STATUS AGE", "g Gang w Pending"),
        ("compositepodgroups", "NAME POLICY WORKLOAD AGE", "c Basic w"),
        ("workloads", "NAME AGE", "w"),
        ("devicetaintrules", "NAME AGE", "r"),
    ):
        first, second = (line.split() for line in kubectl("get", kind).splitlines())
        assert (" ".join(first), " ".join(second[:-1])) == (header, row)
    explained = kubectl("explain", "podgroup.spec.disruptionMode")
    assert re.search(r"all\s+<AllDisruptionMode>", explained)
    assert re.search(r"scheduling\s+<JobSchedulingConfiguration>", kubectl("explain", "job.spec"))


def test_the_documented_commands_work(kubectl: Kubectl) -> None:
    """All of the table in the reference, in its order."""
    page = ROOT / "docs" / "reference" / "embedded-control-plane.md"
    commands = re.findall(r"^\| `kubectl (.+)` \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) > 50
    for command in commands:
        kubectl(*command.split(" "))


def test_all_errors_of_an_invalid_pod_are_reported(kubectl: Kubectl) -> None:
    """One line for each field."""
    said = kubectl.refused("run", "Bad", "--image=x", "--overrides", '{"spec":{"nodeSelector":{"a b":"c"}}}')
    assert [line.split(":")[0] for line in said.splitlines()[1:]] == [
        "* metadata.name",
        "* spec.containers[0].name",
        "* spec.nodeSelector",
    ]


def test_who_am_i(kubectl: Kubectl) -> None:
    """auth can-i and whoami."""
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "system:masters" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_mistakes_are_explained(kubectl: Kubectl) -> None:
    """A wrong field, a wrong value, what stand-ins cannot do."""
    wrong = DEPLOYMENT.replace("replicas:", "replica:")
    assert 'unknown field "spec.replica"' in kubectl.refused("apply", "-f", "-", stdin=wrong)
    negative = DEPLOYMENT.replace("replicas: 2", "replicas: -2")
    assert "spec.replicas" in kubectl.refused("apply", "-f", "-", stdin=negative)
    kubectl("run", "one", "--image=x")
    assert "simulated and run no containers" in kubectl.refused("logs", "one")
    assert "Metrics API not available" in kubectl.refused("top", "nodes")
    assert 'pods "nope" not found' in kubectl.refused("get", "pod", "nope")
