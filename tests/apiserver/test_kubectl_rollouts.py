"""kubectl rollout works with every workload that has revisions, and kubectl shows what controllers did."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.apiserver import Pace
from support.apiserver.kubectl import PROBLEM, Kubectl
from support.apiserver.running import Running

pytestmark = [pytest.mark.kubectl, pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")]

WORKLOAD = """
apiVersion: apps/v1
kind: {kind}
metadata: {{name: w}}
spec:
  {more}
  selector: {{matchLabels: {{app: w}}}}
  template:
    metadata: {{labels: {{app: w}}}}
    spec:
      nodeName: node-0
      containers: [{{name: c, image: "i:1"}}]
"""
MORE = {"Deployment": "replicas: 2", "StatefulSet": "replicas: 2\n  serviceName: w", "DaemonSet": ""}


@pytest.fixture
def kubectl(start: Callable[..., Running], tmp_path: Path) -> Kubectl:
    """kubectl for a control plane whose nodes act at once."""
    pace = Pace(start=0, run=0, stop=0)
    return Kubectl(start(controllers=True, kubelets=True, nodes=2, pace=pace), tmp_path)


def images(kubectl: Kubectl) -> set[str]:
    """Images of the pods that stay."""
    pods = kubectl.json("pods", "-l", "app=w")["items"]
    return {one["spec"]["containers"][0]["image"] for one in pods if "deletionTimestamp" not in one["metadata"]}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_roll_out_and_back(kubectl: Kubectl, kind: str) -> None:
    """status waits, history lists, undo goes back, also to a revision, restart makes new pods."""
    what = f"{kind.lower()}/w"
    kubectl("apply", "-f", "-", stdin=WORKLOAD.format(kind=kind, more=MORE[kind]))
    kubectl("rollout", "status", what, "--timeout=300s")
    for number in (2, 3):
        kubectl("set", "image", what, f"c=i:{number}")
        kubectl("rollout", "status", what, "--timeout=300s")
        assert images(kubectl) == {f"i:{number}"}
    history = kubectl("rollout", "history", what)
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["1", "2", "3"]
    assert "i:2" in kubectl("rollout", "history", what, "--revision=2")
    kubectl("rollout", "undo", what)
    kubectl("rollout", "status", what, "--timeout=300s")
    assert images(kubectl) == {"i:2"}
    kubectl("rollout", "undo", what, "--to-revision=1")
    kubectl("rollout", "status", what, "--timeout=300s")
    assert images(kubectl) == {"i:1"}
    before = {one["metadata"]["uid"] for one in kubectl.json("pods", "-l", "app=w")["items"]}
    kubectl("rollout", "restart", what)
    kubectl("rollout", "status", what, "--timeout=300s")
    after = [one for one in kubectl.json("pods", "-l", "app=w")["items"] if "deletionTimestamp" not in one["metadata"]]
    assert before.isdisjoint(one["metadata"]["uid"] for one in after)


def test_pause_and_resume(kubectl: Kubectl) -> None:
    """Changes wait until the Deployment is resumed."""
    kubectl("apply", "-f", "-", stdin=WORKLOAD.format(kind="Deployment", more=MORE["Deployment"]))
    kubectl("rollout", "status", "deployment/w", "--timeout=300s")
    kubectl("rollout", "pause", "deployment/w")
    kubectl("set", "image", "deployment/w", "c=i:2")
    kubectl("wait", "--for=jsonpath={.status.observedGeneration}=3", "deployment/w", "--timeout=300s")
    assert images(kubectl) == {"i:1"}
    kubectl("rollout", "resume", "deployment/w")
    kubectl("rollout", "status", "deployment/w", "--timeout=300s")
    assert images(kubectl) == {"i:2"}


def test_describe_shows_what_happened(kubectl: Kubectl) -> None:
    """The events of controllers."""
    kubectl("apply", "-f", "-", stdin=WORKLOAD.format(kind="Deployment", more=MORE["Deployment"]))
    kubectl("rollout", "status", "deployment/w", "--timeout=300s")
    described = kubectl("describe", "deployment", "w")
    assert "ScalingReplicaSet" in described
    assert "deployment-controller" in described
    assert "from 0 to 2" in described


def test_jobs_and_cron_jobs(kubectl: Kubectl) -> None:
    """wait sees a Job complete; one can be started from a CronJob by hand."""
    kubectl("create", "cronjob", "c", "--image=i", "--schedule=0 0 1 1 *")
    kubectl(
        "patch", "cronjob", "c", "-p", '{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"nodeName":"node-0"}}}}}}'
    )
    kubectl("create", "job", "now", "--from=cronjob/c")
    kubectl("wait", "--for=condition=Complete", "job/now", "--timeout=300s")
    row = kubectl("get", "jobs", "now").splitlines()[1].split()
    assert row[:3] == ["now", "Complete", "1/1"]
    assert "Completed" in kubectl("describe", "job", "now")
