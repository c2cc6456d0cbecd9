"""`kubestow explain` at a live cluster: the scheduler's own record, dry runs, and what the caller may see."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from kubestow.cli.explain import process as explain_process
from kubestow.cli.explain.pending import overview_of
from support.cli.explain_files import gang, node, pod, refused, run_explain
from support.cli.up_running import Up
from support.client.authority import Authority
from support.polling import until

BROKEN = """
class Broken:
    name = "Broken"

    def __init__(self, args, handle): ...

    def filter(self, state, pod, node):
        raise OSError("no licence server")
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster with a pod that runs and one that cannot; whatever tests add, a node stays empty."""
    started = Up(tmp_path_factory.mktemp("up"), "--nodes", "4")
    started.create_pod("small")
    started.create_pod("large", "9")
    started.pods_when("Running", 1)
    until(lambda: started.get("/api/v1/namespaces/default/pods/large")["status"].get("conditions"))
    yield started
    started.stop()


def explain(up: Up, *arguments: str) -> dict[str, Any]:
    done = run_explain(*arguments, "-o", "json", "--kubeconfig", str(up.kubeconfig))
    assert done.exit_code == 0, done.output
    decision: dict[str, Any] = json.loads(done.output)
    return decision


def test_the_record_of_the_scheduler_is_shown(up: Up) -> None:
    """The kubeconfig of `kubestow up` names it; its record is shown unchanged."""
    decision = explain(up, "small")
    assert (decision["source"], decision["outcome"]) == ("scheduler", "scheduled")
    assert decision["chosen"] == up.get("/api/v1/namespaces/default/pods/small")["spec"]["nodeName"]
    assert decision["binding"]["state"] == "bound"


def test_changes_that_would_help_a_pending_pod_are_shown(up: Up) -> None:
    """The record is the scheduler's; the suggestions were tried on the objects that the caller may read."""
    decision = explain(up, "default/large")
    assert (decision["source"], decision["outcome"]) == ("scheduler", "unschedulable")
    assert decision["message"].startswith("0/4 nodes are available: 4 Insufficient cpu.")
    assert decision["wouldFitIf"][0]["change"] == "request of cpu lowered from 9 to 8"
    screen = run_explain("large", "--kubeconfig", str(up.kubeconfig)).output
    assert screen.startswith("Pod default/large is pending: it fits nowhere on 4 nodes.\n")
    assert "\n  Tried " in screen


def test_a_dry_run_that_fails_where_the_scheduler_did_not(up: Up, tmp_path: Path) -> None:
    """What would help cannot be tried then, and it is said why."""
    plugin, configuration = tmp_path / "broken.py", tmp_path / "config.yaml"
    plugin.write_text(BROKEN)
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: '*'}], enabled: [{name: Broken}]}}}]\n"
    )
    decision = explain(up, "large", "--plugin", str(plugin), "--config", str(configuration))
    assert (decision["source"], decision["outcome"]) == ("scheduler", "unschedulable")
    assert "wouldFitIf" not in decision
    (note,) = decision["notes"]
    assert note.startswith("what would help is unknown: a dry run, with the configuration, plugins and feature gates")
    assert "no licence server" in note


def test_a_manifest_is_tried_and_nothing_is_written(up: Up, tmp_path: Path) -> None:
    """Where would it go; afterwards there is no such pod."""
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(pod("trial")))
    decision = explain(up, "-f", str(path))
    assert (decision["source"], decision["outcome"], decision["feasible"]) == ("dry run", "scheduled", 4)
    names = [one["metadata"]["name"] for one in up.get("/api/v1/pods")["items"]]
    assert "trial" not in names


def test_without_an_answer_of_the_scheduler_it_is_a_dry_run(up: Up, tmp_path: Path) -> None:
    """No scheduler is named, or it is gone: what was done instead is said. One that was asked for must answer."""
    whole = up.kubeconfig.read_text()
    scheduler = yaml.safe_load(whole)["clusters"][0]["cluster"]["extensions"][0]["extension"]["server"]
    for number, (text, said) in enumerate(
        (
            (whole.replace("kubestow.dev/scheduler", "other"), "no scheduler was queried (--server names it)"),
            (whole.replace(scheduler, "https://127.0.0.1:1"), "does not answer: cannot connect to 127.0.0.1:1: "),
        )
    ):
        path = tmp_path / f"{number}"
        path.write_text(text)
        done = run_explain("large", "--kubeconfig", str(path))
        assert said in " ".join(done.output.split()), done.output
        assert "this is a dry run." in " ".join(done.output.split())
    (line,) = refused("small", "--kubeconfig", str(up.kubeconfig), "--server", "https://127.0.0.1:1")
    assert line.startswith("Error: the scheduler at https://127.0.0.1:1 does not answer: ")


def test_a_scheduler_that_is_not_trusted(up: Up, tmp_path: Path) -> None:
    """It is said how it can be."""
    scheduler = yaml.safe_load(up.kubeconfig.read_text())["clusters"][0]["cluster"]["extensions"][0]["extension"]
    other = tmp_path / "other.crt"
    other.write_bytes(Authority().pem)
    asked = ("small", "--kubeconfig", str(up.kubeconfig), "--server", scheduler["server"])
    (line,) = refused(*asked, "--certificate-authority", str(other))
    assert line.endswith("(--certificate-authority names its authority, --insecure-skip-tls-verify skips verification)")


def test_a_pod_that_is_not_there_is_one_line(up: Up) -> None:
    """With the server that was asked."""
    (line,) = refused("default/none", "--kubeconfig", str(up.kubeconfig))
    assert line.startswith("Error: there is no pod default/none at https://127.0.0.1:")
    (line,) = refused("smal", "--kubeconfig", str(up.kubeconfig))
    assert line.endswith("; did you mean default/small?")
    (line,) = refused("defualt/none", "--kubeconfig", str(up.kubeconfig))
    assert line == "Error: there is no namespace defualt; did you mean default?"


def test_an_owner_that_is_not_there_is_one_line(up: Up) -> None:
    (line,) = refused("deployment/none", "--kubeconfig", str(up.kubeconfig))
    assert line == "Error: there is no deployment none in namespace default"


def test_a_node_that_is_not_there_is_one_line(up: Up) -> None:
    """No note says that no scheduler evaluated it."""
    for arguments in (("small", "--node", "node-9"), ("small", "--against", "node-9")):
        (line,) = refused(*arguments, "--kubeconfig", str(up.kubeconfig))
        assert line == "Error: there is no node node-9; did you mean node-0 or node-1 or node-2?"


def tried_and_gone(up: Up, name: str, cpu: str) -> str | None:
    """The node of a pod that was there for a while."""
    path = f"/api/v1/namespaces/default/pods/{name}"
    up.create_pod(name, cpu)
    until(lambda: up.get(path)["status"].get("conditions"))
    node: str | None = up.get(path)["spec"].get("nodeName")
    up.delete_at_once(path)
    return node


def test_a_deleted_pod_is_explained_from_its_record(up: Up) -> None:
    """Where it went, for example before it had to make room; one that never had a node is not there."""
    chosen = tried_and_gone(up, "leaving", "100m")
    assert tried_and_gone(up, "never", "9") is None
    decision = explain(up, "leaving")
    assert (decision["source"], decision["chosen"]) == ("scheduler", chosen)
    assert decision["notes"] == ["the pod no longer exists; this is the last decision about it."]
    for arguments in (("never",), ("leaving", "--against", "node-0")):
        (line,) = refused(*arguments, "--kubeconfig", str(up.kubeconfig))
        assert line.startswith(f"Error: there is no pod default/{arguments[0]} at https://127.0.0.1:")


def test_a_pod_that_another_has_bound_is_not_pending(up: Up) -> None:
    """What was recorded when it fitted nowhere is no longer true, for example since another instance leads."""
    path = "/api/v1/namespaces/default/pods/moved"
    up.create_pod("moved", "9")
    until(lambda: up.get(path)["status"].get("conditions"))
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "moved"}, "target": target}
    up.create(f"{path}/binding", binding)
    decision = explain(up, "moved")
    up.delete_at_once(path)
    assert decision["source"] == "dry run"
    assert decision["notes"] == [
        "the scheduler's record is older: another scheduler bound the pod; this is a dry run.",
        "it is on node node-0 already; this is where it would go if it were scheduled now.",
    ]


def test_a_context_that_is_not_there_is_one_line(up: Up) -> None:
    """With those that are."""
    (line,) = refused("small", "--kubeconfig", str(up.kubeconfig), "--context", "other")
    assert line.endswith("--context: there is no context 'other'; there are: kubestow")


@pytest.mark.parametrize(
    ("form", "expected"), [("wide", "Pod default/trial would"), ("json", '"pod": "default/trial"')]
)
def test_watching_explains_again_when_something_changes(
    up: Up, monkeypatch: pytest.MonkeyPatch, form: str, expected: str
) -> None:
    """An equal decision is not shown twice, even if its time differs."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            before = len(up.get("/api/v1/pods?fieldSelector=status.phase%3DRunning")["items"])
            up.create_pod(f"more-{form}")
            up.pods_when("Running", before + 1)
        elif len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(explain_process, "pause", pause)
    path = up.kubeconfig.parent / "pod.json"
    path.write_text(json.dumps(pod("trial", "8")))
    done = run_explain("-f", str(path), "--watch", "-o", form, "--kubeconfig", str(up.kubeconfig))
    assert (done.exit_code, len(pauses)) == (0, 3)
    assert done.output.count(expected) == 2


def test_pending_pods_of_a_live_cluster_are_shown_until_something_changes(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The overview is made again when an object has changed only."""
    made = Mock(wraps=overview_of)
    monkeypatch.setattr(explain_process, "overview_of", made)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(explain_process, "pause", pause)
    done = run_explain("-A", "--watch", "--kubeconfig", str(up.kubeconfig))
    assert (done.exit_code, made.call_count) == (0, 1)
    assert "Pod default/large\n               4 Insufficient cpu\n" in done.output
    assert "-> request of cpu lowered from 9 to 8" in done.output
    assert run_explain("-n", "kube-system", "--kubeconfig", str(up.kubeconfig)).output == "No pod is pending.\n"


def test_a_gated_pod_has_no_note_about_a_missing_record(up: Up) -> None:
    """The scheduler has not tried it, so there is nothing to record."""
    up.create("/api/v1/namespaces/default/pods", pod("gated", schedulingGates=[{"name": "wait"}]))
    output = run_explain("gated", "--kubeconfig", str(up.kubeconfig)).output
    assert output.startswith("Pod default/gated is held back by SchedulingGates.\n")
    assert "Note:" not in output
    assert "scheduling gate wait removed" in output


class _Forbidding(http.server.BaseHTTPRequestHandler):
    """An API server that lets its caller list only some resources."""

    objects: dict[str, list[dict[str, Any]] | dict[str, Any]] = {}
    """What is found where: lists, and single objects."""
    lacks = ""
    """The beginning of paths that it does not serve."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        found = self.objects.get(path)
        code, reason = (404, "NotFound") if self.lacks and path.startswith(self.lacks) else (403, "Forbidden")
        if found is None:
            message = f"cannot list {path}"
            body: dict[str, Any] = {"kind": "Status", "code": code, "reason": reason, "message": message}
        elif isinstance(found, dict):
            body = found
        else:
            body = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": found}
        data = json.dumps(body).encode()
        self.send_response(code if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class _Patient(http.server.ThreadingHTTPServer):
    """A server that ignores clients that leave before the response."""

    def handle_error(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def forbidding(tmp_path: Path) -> Iterator[str]:
    """A kubeconfig for it."""
    with _Patient(("127.0.0.1", 0), _Forbidding) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        scheduler = {"name": "kubestow.dev/scheduler", "extension": {"server": url}}
        cluster = {"name": "c", "cluster": {"server": url, "extensions": [scheduler]}}
        context = {"name": "c", "context": {"cluster": "c", "namespace": "shop"}}
        config = {"clusters": [cluster], "contexts": [context], "current-context": "c"}
        (tmp_path / "config").write_text(json.dumps(config))
        yield str(tmp_path / "config")
        server.shutdown()
        thread.join()


def test_what_may_not_be_listed_is_said(forbidding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is explained; without nodes nothing can be."""
    path = tmp_path / "pod.json"
    path.write_text(json.dumps({**pod("web"), "metadata": {"name": "web"}}))
    monkeypatch.setattr(_Forbidding, "objects", {"/api/v1/nodes": [node("a")]})
    done = run_explain("-f", str(path), "--kubeconfig", forbidding)
    assert done.output.startswith("Pod shop/web would go to a.\n")
    assert "Note: pods may not be listed and are ignored; nodes appear emptier than they are" in done.output
    assert "Note: namespaces, services, replicationcontrollers, persistentvolumes," in done.output
    assert "Note: the scheduler's configuration and feature gates could not be read" in done.output
    assert done.output.count("Note: ") == 3
    monkeypatch.setattr(_Forbidding, "objects", {})
    (line,) = refused("-f", str(path), "--kubeconfig", forbidding)
    assert line == "Error: nodes cannot be listed: cannot list /api/v1/nodes"
    (line,) = refused("web", "--kubeconfig", forbidding)
    assert line == "Error: pod shop/web cannot be read: cannot list /api/v1/namespaces/shop/pods/web"


def test_a_record_is_shown_to_users_who_may_not_list_nodes(forbidding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would help is not looked for."""
    message = "0/1 nodes are available: 1 Insufficient cpu."
    decision = {"version": 1, "pod": "shop/web", "outcome": "unschedulable", "chosen": None, "message": message}
    objects = {
        "/api/v1/namespaces/shop/pods/web": pod("web", namespace="shop"),
        "/debug/decisions/shop/web": {"version": 1, "items": [decision | {"nodeCount": 1, "evaluated": 1}]},
    }
    monkeypatch.setattr(_Forbidding, "objects", objects)
    asked = ("web", "--kubeconfig", forbidding)
    output = " ".join(run_explain(*asked).output.split())
    assert output.startswith(f"Pod shop/web is pending: it fits nowhere on 1 node. {message} ")
    assert output.endswith("Note: what would help was not computed: nodes cannot be listed: cannot list /api/v1/nodes")
    assert refused(*asked, "--against", "a") == ["Error: nodes cannot be listed: cannot list /api/v1/nodes"]


def test_a_scheduler_without_a_record_says_why(forbidding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own words, whether or not it was asked for; then it is a dry run."""
    objects = {"/api/v1/namespaces/shop/pods/web": pod("web", namespace="shop"), "/api/v1/nodes": [node("a")]}
    monkeypatch.setattr(_Forbidding, "objects", objects)
    monkeypatch.setattr(_Forbidding, "lacks", "/debug/decisions/")
    url = json.loads(Path(forbidding).read_text())["clusters"][0]["cluster"]["server"]
    said = f"the scheduler at {url} has no record of it: cannot list /debug/decisions/shop/web; this is a dry run."
    for more in ((), ("--server", url)):
        assert said in " ".join(run_explain("web", "--kubeconfig", forbidding, *more).output.split())


def test_what_the_server_lacks_is_said(forbidding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of a pod that needs it is this, and not a missing claim."""
    monkeypatch.setattr(_Forbidding, "objects", {"/api/v1/nodes": [node("a")]})
    monkeypatch.setattr(_Forbidding, "lacks", "/apis/resource.k8s.io/")
    trial = pod("web")
    trial["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpus"}]
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(trial))
    done = run_explain("-f", str(path), "--kubeconfig", forbidding)
    assert "resourceclaims.resource.k8s.io: the API server does not have them" in " ".join(done.output.split())


def test_templates_of_claims_are_read_for_pods_that_name_one(
    forbidding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for no others: who asks about those needs no right to list templates."""
    templates = "resourceclaimtemplates.resource.k8s.io"
    monkeypatch.setattr(_Forbidding, "objects", {"/api/v1/nodes": [node("a")]})
    path = tmp_path / "pod.json"
    for claims in ([], [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]):
        trial = pod("web")
        trial["spec"]["resourceClaims"] = claims
        path.write_text(json.dumps(trial))
        done = run_explain("-f", str(path), "--kubeconfig", forbidding)
        assert (templates in " ".join(done.output.split())) is bool(claims)


def test_a_group_needs_to_be_seen(forbidding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Itself, and its pods: else it is said what may not be listed, and not that there is no such group."""
    groups = "/apis/scheduling.k8s.io/v1beta1/podgroups"
    seen: dict[str, list[dict[str, Any]]] = {"/api/v1/nodes": [node("a")]}
    monkeypatch.setattr(_Forbidding, "objects", seen)
    asked = ("podgroup/train", "--kubeconfig", forbidding)
    assert refused(*asked) == [f"Error: pod groups cannot be listed: cannot list {groups}"]
    monkeypatch.setattr(_Forbidding, "objects", seen | {groups: [gang("train", 2, "shop")]})
    assert refused(*asked) == ["Error: pods cannot be listed: cannot list /api/v1/pods"]
    monkeypatch.setattr(_Forbidding, "objects", seen | {groups: [gang("train", 2, "shop")], "/api/v1/pods": []})
    assert refused(*asked) == ["Error: pod group shop/train has no pending pods; 0 have a node"]


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
def test_kubectl_finds_the_plugin(up: Up) -> None:
    """`kubectl kubestow explain POD`, as it is installed with the package."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(up.kubeconfig),
    }
    command = ["kubectl", "kubestow", "explain", "small"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Pod default/small went to node-"), done.stderr


def test_a_misspelt_template_of_a_claim_is_named(up: Up) -> None:
    """Templates are read for a pod that waits for its claim."""
    api, spec = "resource.k8s.io/v1", {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    template = {
        "apiVersion": api,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus"},
        "spec": {"spec": spec},
    }
    up.create(f"/apis/{api}/namespaces/default/resourceclaimtemplates", template)
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpsu"}]
    pod = {
        "metadata": {"name": "waits"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims},
    }
    up.create("/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **pod})
    causes = explain(up, "waits")["causes"]
    assert ["gpus"] in [one.get("similar") for one in causes]
    up.delete_at_once("/api/v1/namespaces/default/pods/waits")
