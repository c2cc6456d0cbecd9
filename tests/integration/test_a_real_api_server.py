"""`kubestow scheduler` at a real kube-apiserver, with TLS, tokens and RBAC; every pod and event is checked."""

import json
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from support.integration.cluster import node, pod, priority_class
from support.integration.real_control_plane import RealControlPlane, token_of
from support.integration.real_scheduler import PODS, QUICK, Scheduler, Start, plane, start
from support.polling import until
from support.repository import ROOT

__all__ = ["plane", "start"]
"""Fixtures."""

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
ZONE = "topology.kubernetes.io/zone"
DEPLOY = ROOT / "deploy"


@pytest.fixture(autouse=True)
def _clean(plane: RealControlPlane) -> Iterator[None]:
    """Start every test with an empty cluster."""
    yield
    for path in (PODS, EVENTS, "/api/v1/nodes"):
        plane.delete(path)
    until(lambda: not plane.get(PODS)["items"])
    if any(item["metadata"]["name"] == "kube-scheduler" for item in plane.get(LEASE.rpartition("/")[0])["items"]):
        plane.delete(LEASE)


def _pods(plane: RealControlPlane) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in plane.get(PODS)["items"]}


def _placed(plane: RealControlPlane) -> dict[str, str]:
    return {name: item["spec"].get("nodeName", "") for name, item in _pods(plane).items()}


def _all_bound(plane: RealControlPlane, *names: str) -> bool:
    placed = _placed(plane)
    return all(placed.get(name) for name in names or placed)


def _events(plane: RealControlPlane, reason: str) -> list[dict[str, Any]]:
    return [event for event in plane.get(EVENTS)["items"] if event["reason"] == reason]


def _check_one_event_per_binding(plane: RealControlPlane, scheduler: Scheduler) -> None:
    """Check that each pod has one event, with the pod's node in it."""
    placed = _placed(plane)
    expected = {f"Successfully assigned default/{name} to {where}" for name, where in placed.items()}

    def event_counts() -> Counter[str]:
        return Counter(event["note"] for event in _events(plane, "Scheduled") if event["regarding"]["name"] in placed)

    until(lambda: event_counts().keys() == expected, lambda: f"{event_counts()}\n{scheduler.output()}")
    assert set(event_counts().values()) == {1}
    reported = {(one["type"], one["action"], one["reportingController"]) for one in _events(plane, "Scheduled")}
    assert reported == {("Normal", "Binding", "default-scheduler")}


def _condition(obj: dict[str, Any], kind: str) -> dict[str, Any] | None:
    conditions = obj["status"].get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), None)


def test_pods_are_bound_with_events(plane: RealControlPlane, start: Start) -> None:
    """Many pods, some created before the scheduler, some after; one event each; a graceful end releases the lease."""
    for i in range(5):
        plane.create("/api/v1/nodes", node(f"n{i}"))
    for i in range(50):
        plane.create(PODS, pod(f"before{i}"))
    scheduler = start(*QUICK)
    for i in range(50):
        plane.create(PODS, pod(f"after{i}"))
    until(lambda: _all_bound(plane), scheduler.output)
    assert len(_placed(plane)) == 100
    _check_one_event_per_binding(plane, scheduler)
    for item in _pods(plane).values():
        bound = _condition(item, "PodScheduled")
        assert bound is not None
        assert bound["status"] == "True"
    assert scheduler.get("/readyz")[0] == 200
    assert scheduler.stop() == 0
    assert not plane.get(LEASE)["spec"].get("holderIdentity")


def test_a_pod_waits_for_a_suitable_node(plane: RealControlPlane, start: Start) -> None:
    """Condition and event contain the reason; a new node lets the pod in, and the condition is updated."""
    plane.create("/api/v1/nodes", node("small", cpu="1"))
    plane.create(PODS, pod("big", cpu="3"))
    scheduler = start("--leader-elect=false")
    condition = until(lambda: _condition(_pods(plane)["big"], "PodScheduled"), scheduler.output)
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    event = until(lambda: _events(plane, "FailedScheduling"), scheduler.output)[0]
    assert (event["note"], event["type"], event["action"]) == (condition["message"], "Warning", "Scheduling")
    plane.create("/api/v1/nodes", node("large"))
    until(lambda: _all_bound(plane), scheduler.output)
    assert _placed(plane) == {"big": "large"}


def _ensure(plane: RealControlPlane, path: str, obj: dict[str, Any]) -> None:
    names = {item["metadata"]["name"] for item in plane.get(path)["items"]}
    if obj["metadata"]["name"] not in names:
        plane.create(path, obj)


def test_preemption(plane: RealControlPlane, start: Start) -> None:
    """The important pod replaces the fewest, least important ones; they have events, and are deleted."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    _ensure(plane, classes, priority_class("high", 1000))
    _ensure(plane, classes, priority_class("middle", 500))
    plane.create("/api/v1/nodes", node("n1", cpu="1"))
    plane.create("/api/v1/nodes", node("n2", cpu="1"))
    scheduler = start("--leader-elect=false")
    plane.create(PODS, pod("low", cpu="800m"))
    until(lambda: _all_bound(plane), scheduler.output)
    plane.create(PODS, pod("middle", cpu="800m", priorityClassName="middle"))
    until(lambda: _all_bound(plane), scheduler.output)
    where = _placed(plane)["low"]
    plane.create(PODS, pod("vip", cpu="800m", priorityClassName="high"))
    until(lambda: "low" not in _placed(plane) and _all_bound(plane, "vip"), scheduler.output)
    assert _placed(plane)["vip"] == where
    assert "middle" in _placed(plane)
    event = until(lambda: _events(plane, "Preempted"), scheduler.output)[0]
    uid = _pods(plane)["vip"]["metadata"]["uid"]
    assert event["regarding"]["name"] == "low"
    assert event["note"] == f"Preempted by pod {uid} on node {where}"
    _check_one_event_per_binding(plane, scheduler)


def test_spread(plane: RealControlPlane, start: Start) -> None:
    """Twelve pods over three zones of different size: four each."""
    for i in range(6):
        zone = "a" if i < 4 else "b" if i == 4 else "c"
        plane.create("/api/v1/nodes", node(f"n{i}", **{ZONE: zone}))
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    for i in range(12):
        wanted = pod(f"p{i}", topologySpreadConstraints=[constraint])
        wanted["metadata"]["labels"] = {"app": "x"}
        plane.create(PODS, wanted)
    scheduler = start("--leader-elect=false")
    until(lambda: _all_bound(plane), scheduler.output)
    zones = {item["metadata"]["name"]: item["metadata"]["labels"][ZONE] for item in plane.get("/api/v1/nodes")["items"]}
    assert Counter(zones[where] for where in _placed(plane).values()) == {"a": 4, "b": 4, "c": 4}
    _check_one_event_per_binding(plane, scheduler)


def test_a_volume_is_bound_before_its_pod(plane: RealControlPlane, start: Start) -> None:
    """The volume is reserved for the claim; when the claim is bound to it, the pod is bound to the volume's node."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    plane.create("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    for name in ("n1", "n2"):
        plane.create("/api/v1/nodes", node(name))
    on_n2 = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v1"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_n2]}]}},
        },
    }
    plane.create(VOLUMES, volume)
    plane.patch(f"{VOLUMES}/v1/status", {"status": {"phase": "Available"}})
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "local",
        },
    }
    plane.create(CLAIMS, claim)
    plane.create(PODS, pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c1"}}]))
    scheduler = start("--leader-elect=false")
    reference = until(lambda: plane.get(f"{VOLUMES}/v1")["spec"].get("claimRef"), scheduler.output)
    assert (reference["namespace"], reference["name"]) == ("default", "c1")
    assert reference["uid"] == plane.get(f"{CLAIMS}/c1")["metadata"]["uid"]
    assert plane.get(f"{VOLUMES}/v1")["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert not _all_bound(plane)
    # As done by the volume controller.
    plane.patch(
        f"{CLAIMS}/c1",
        {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v1"}},
    )
    until(lambda: _all_bound(plane), scheduler.output)
    assert _placed(plane) == {"p": "n2"}
    _check_one_event_per_binding(plane, scheduler)


def test_pods_survive_crashes_of_the_api_server(plane: RealControlPlane, start: Start) -> None:
    """The server is killed twice while pods are created: all are bound once, with one event each."""
    for i in range(3):
        plane.create("/api/v1/nodes", node(f"n{i}"))
    scheduler = start(
        "--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s", "--leader-elect-retry-period=1s"
    )
    for turn in range(3):
        for i in range(20):
            plane.create(PODS, pod(f"p{turn}-{i}"))
        if turn < 2:
            # At once, with bindings and events in progress.
            plane.kill_api_server()
            plane.start_api_server()
    until(lambda: _all_bound(plane), scheduler.output)
    assert len(_placed(plane)) == 60
    assert scheduler.process.poll() is None, scheduler.output()
    placed = _placed(plane)

    def notes() -> list[str]:
        return [event["note"] for event in _events(plane, "Scheduled")]

    # A crash may lose the response to a binding, and with it the event; after the crash, no event may be missing.
    last = {f"Successfully assigned default/{name} to {placed[name]}" for name in placed if name.startswith("p2-")}
    until(lambda: last <= set(notes()), scheduler.output)
    possible = {f"Successfully assigned default/{name} to {where}" for name, where in placed.items()}
    assert set(notes()) <= possible
    assert max(Counter(notes()).values()) == 1


def test_when_the_leader_is_killed_another_takes_over(plane: RealControlPlane, start: Start) -> None:
    """kill -9: the other one waits until the lease has expired, then binds the pods created meanwhile."""
    plane.create("/api/v1/nodes", node("n1"))
    first = start(*QUICK)
    leases = LEASE.rpartition("/")[0]
    holder = until(
        lambda: next((item["spec"].get("holderIdentity") for item in plane.get(leases)["items"]
                      if item["metadata"]["name"] == "kube-scheduler"), None),
        first.output,
    )  # fmt: skip
    second = start(*QUICK)
    until(lambda: second.get("/readyz")[0] == 200, second.output)
    plane.create(PODS, pod("a"))
    until(lambda: _all_bound(plane), first.output)
    _check_one_event_per_binding(plane, first)
    first.process.kill()
    first.process.wait()
    plane.create(PODS, pod("b"))
    until(lambda: _all_bound(plane), second.output)
    lease = plane.get(LEASE)["spec"]
    assert lease["holderIdentity"] not in ("", holder)
    assert lease["leaseTransitions"] >= 1
    _check_one_event_per_binding(plane, second)
    assert second.stop() == 0


def test_the_deployed_role_is_enough(plane: RealControlPlane, start: Start) -> None:
    """With only the service account and the role of deploy/, pods are bound and events are recorded."""
    paths = {
        "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    }
    for obj in yaml.safe_load_all((DEPLOY / "kubernetes/rbac.yaml").read_text()):
        plane.create(paths[obj["kind"]], obj)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    account = f"{paths['ServiceAccount']}/kubestow/token"
    token = plane.create(account, request)["status"]["token"]
    plane.create("/api/v1/nodes", node("n1"))
    plane.create(PODS, pod("p"))
    plane.create(PODS, pod("big", cpu="100"))
    scheduler = start(*QUICK, user="kubestow", token=token)
    until(lambda: _all_bound(plane, "p"), scheduler.output)
    until(lambda: _condition(_pods(plane)["big"], "PodScheduled"), scheduler.output)
    until(lambda: _events(plane, "Scheduled") and _events(plane, "FailedScheduling"), scheduler.output)
    assert "forbid" not in scheduler.output()
    assert scheduler.stop() == 0


def test_without_rights_nothing_is_scheduled(plane: RealControlPlane, start: Start) -> None:
    """The log names the forbidden resources; the scheduler is not ready, and keeps trying."""
    plane.create("/api/v1/nodes", node("n1"))
    plane.create(PODS, pod("p"))
    scheduler = start("--leader-elect=false", user="nobody")
    until(lambda: "forbids to list and watch them" in scheduler.output(), scheduler.output)
    until(lambda: scheduler.get("/readyz")[0] == 500, scheduler.output)
    assert scheduler.get("/livez") == (200, "ok")
    assert not _all_bound(plane)
    assert scheduler.process.poll() is None
    assert token_of("nobody") not in scheduler.output()


def test_metrics_require_authorization(plane: RealControlPlane, start: Start) -> None:
    """401 for an unknown token, 403 without the right, and 200 as soon as the right is granted."""
    scheduler = start("--leader-elect=false", "--authorization-webhook-cache-unauthorized-ttl=1s")
    until(lambda: scheduler.get("/healthz")[0] == 200, scheduler.output)
    assert scheduler.get("/metrics", "stranger")[0] == 401
    assert scheduler.get("/metrics")[0] == 403
    status, text = scheduler.get("/metrics", "monitor")
    assert status == 403
    assert 'User \\"monitor\\" cannot get path \\"/metrics\\"' in text
    group = "/apis/rbac.authorization.k8s.io/v1"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reads-metrics"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    plane.create(f"{group}/clusterroles", role)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "monitor-reads-metrics"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-metrics"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "monitor"}],
    }
    plane.create(f"{group}/clusterrolebindings", binding)
    until(lambda: scheduler.get("/metrics", "monitor")[0] == 200, scheduler.output)
    assert "scheduler_pending_pods" in scheduler.get("/metrics", "monitor")[1]
    assert scheduler.get("/configz", "monitor")[0] == 403


class Extender(ThreadingHTTPServer):
    """Binds pods at the API server, and allows preemption only for the pod named `chosen`."""

    def __init__(self, plane: RealControlPlane) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        extender = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                args = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                extender.asked.append((self.path, args))
                body = json.dumps(extender.answer(plane, self.path, args)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, plane: RealControlPlane, path: str, args: dict[str, Any]) -> dict[str, Any]:
        if path == "/filter":
            return {"Nodes": args["Nodes"]}
        if path == "/bind":
            meta = {"name": args["PodName"], "uid": args["PodUID"]}
            target = {"apiVersion": "v1", "kind": "Node", "name": args["Node"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
            plane.create(f"{PODS}/{args['PodName']}/binding", binding)
            return {"Error": ""}
        found = {}
        for name, victims in args["NodeNameToVictims"].items():
            if any(victim["metadata"]["name"] == "chosen" for victim in victims["Pods"]):
                pods = [{"UID": victim["metadata"]["uid"]} for victim in victims["Pods"]]
                found[name] = {"Pods": pods, "NumPDBViolations": victims["NumPDBViolations"]}
        return {"NodeNameToMetaVictims": found}


def test_an_extender_filters_binds_and_preempts(plane: RealControlPlane, start: Start, tmp_path: Path) -> None:
    """It receives nodes as stored in the API server, binds every pod itself, and changes the victims."""
    _ensure(plane, "/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 1000))
    for i in range(3):
        plane.create("/api/v1/nodes", node(f"n{i}", cpu="1"))
    extender = Extender(plane)
    try:
        verbs = {"filterVerb": "filter", "preemptVerb": "preempt", "bindVerb": "bind"}
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        file = tmp_path / "scheduler.yaml"
        client = {"kubeconfig": str(plane.kubeconfig("system:kube-scheduler", ""))}
        url = f"http://127.0.0.1:{extender.server_port}"
        configuration = {**kind, "clientConnection": client, "extenders": [{"urlPrefix": url, **verbs}]}
        file.write_text(yaml.safe_dump(configuration))
        scheduler = start(f"--config={file}", "--leader-elect=false")
        for name in ("one", "chosen", "two"):
            plane.create(PODS, pod(name, cpu="800m"))
        until(lambda: _all_bound(plane), scheduler.output)
        where = _placed(plane)["chosen"]
        [stored] = [item for item in plane.get("/api/v1/nodes")["items"] if item["metadata"]["name"] == where]
        stored["metadata"].pop("managedFields", None)
        stored = {field: value for field, value in stored.items() if field not in ("apiVersion", "kind")}
        sent = [item for path, args in extender.asked if path == "/filter" for item in args["Nodes"]["items"]]
        assert stored in sent
        plane.create(PODS, pod("vip", cpu="800m", priorityClassName="high"))
        until(lambda: "chosen" not in _placed(plane) and _all_bound(plane, "vip"), scheduler.output)
        assert _placed(plane)["vip"] == where
        assert {"one", "two"} <= _placed(plane).keys()
        assert sum(path == "/bind" for path, _ in extender.asked) == 4
        _check_one_event_per_binding(plane, scheduler)
    finally:
        extender.shutdown()
        extender.server_close()


def test_the_page_requires_a_role(plane: RealControlPlane, start: Start) -> None:
    """The role and the steps of the how-to are sufficient: a service account, its binding, a token."""
    page = (DEPLOY.parent / "docs/how-to/see-what-the-scheduler-does.md").read_text()
    role = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    accounts, rights = "/api/v1/namespaces/kube-system/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    tokens = {}
    for name in ("viewer", "nobody"):
        plane.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        tokens[name] = plane.create(f"{accounts}/{name}/token", request)["status"]["token"]
    plane.create(f"{rights}/clusterroles", role)
    binding = {"apiVersion": role["apiVersion"], "kind": "ClusterRoleBinding", "metadata": role["metadata"]}
    binding["roleRef"] = {
        "kind": "ClusterRole",
        "name": role["metadata"]["name"],
        "apiGroup": "rbac.authorization.k8s.io",
    }
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "viewer", "namespace": "kube-system"}]
    plane.create(f"{rights}/clusterrolebindings", binding)
    plane.create("/api/v1/nodes", node("n1"))
    plane.create(PODS, pod("p"))
    scheduler = start("--leader-elect=false", "--ui")
    until(lambda: _all_bound(plane), scheduler.output)

    def pods() -> list[int] | None:
        status, text = scheduler.get("/ui/api/v1/cluster", token=tokens["viewer"])
        return json.loads(text)["pods"] if status == 200 else None

    until(lambda: pods() == [1], scheduler.output)
    assert scheduler.get("/ui/")[0] == 200
    assert scheduler.get("/ui/api/v1/cluster")[0] == 403
    assert scheduler.get("/ui/api/v1/cluster", token=tokens["nobody"])[0] == 403
    assert scheduler.get("/ui/api/v1/cluster", token="made-up")[0] == 401
