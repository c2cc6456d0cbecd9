"""Extenders in dry runs: asked with --extenders, and otherwise it is said that they were not."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.cli.explain_files import Files, gang, node, pod, run_explain, workers
from support.cli.up_running import Up
from support.polling import until


class Extender(ThreadingHTTPServer):
    """Refuses the node n-0, likes n-2, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Extender

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        names = body["NodeNames"]
        answers: dict[str, Any] = {
            "/filter": {"NodeNames": [name for name in names if name != "n-0"], "FailedNodes": {"n-0": "too noisy"}},
            "/prioritize": [{"Host": name, "Score": 10 if name == "n-2" else 0} for name in names],
        }
        said = json.dumps(answers[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        """Do not log requests."""


@pytest.fixture
def extender() -> Iterator[Extender]:
    server = Extender()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, *(node(f"n-{number}") for number in range(3)), gang("g", 2), *workers("g", 2))


def configured(files: Files, url: str) -> tuple[str, str]:
    extenders = [
        {
            "urlPrefix": url,
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": True,
        }
    ]
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": extenders,
    }
    return "--config", files.write("config.json", content)


def test_extenders_are_asked_on_request(files: Files, extender: Extender) -> None:
    """Which nodes are feasible, and how good they are; the pod goes where they want it."""
    options = (*configured(files, extender.url), "--extenders")
    decision = json.loads(files.explain_pod(pod("web"), *options, "-o", "json").output)
    assert (decision["chosen"], "notes" in decision) == ("n-2", False)
    assert decision["nodes"]["n-0"]["rejected"] == {
        "plugin": "Extender",
        "code": "Unschedulable",
        "reasons": ["too noisy"],
    }
    assert decision["nodes"]["n-2"]["extenders"] == 500
    assert decision["nodes"]["n-2"]["total"] == sum(decision["nodes"]["n-2"]["plugins"].values()) + 500
    assert [(call["verb"], call["sent"], call["kept"]) for call in decision["extenders"]] == [
        ("filter", 3, 2),
        ("prioritize", 2, 2),
    ]
    assert [(path, body["Pod"]["metadata"]["name"]) for path, body in extender.asked] == [
        ("/filter", "web"),
        ("/prioritize", "web"),
    ]
    screen = files.explain_pod(pod("web"), *options).output
    assert "       1  Extender: too noisy\n          n-0\n" in screen
    assert "  extenders                              500         0\n" in screen


def test_scores_of_extenders_are_shown_wherever_totals_are(files: Files, extender: Extender) -> None:
    """Of one node, in the wide table, and in what another node has before it."""
    options = (*configured(files, extender.url), "--extenders")
    alone = [line.split() for line in files.explain_pod(pod("web"), *options, "--node", "n-2").output.splitlines()]
    assert ["extenders", "500"] in alone
    wide = [line.split() for line in files.explain_pod(pod("web"), *options, "-o", "wide").output.splitlines()]
    assert [line[-1] for line in wide if line[:1] in (["NODE"], ["n-1"], ["n-2"])] == [
        "REASONS",
        "EXTENDERS",
        "500",
        "0",
    ]
    decision = json.loads(files.explain_pod(pod("web"), *options, "--against", "n-1", "-o", "json").output)["against"]
    assert (decision["behind"], decision["behindBy"]) == (500, {"extenders": 500})


def test_without_the_flag_it_is_said_that_they_were_not(files: Files, extender: Extender) -> None:
    """Of pods how to ask; groups are tried without."""
    options = configured(files, extender.url)
    decision = json.loads(files.explain_pod(pod("web"), *options, "-o", "json").output)
    assert decision["notes"] == [f"the extender {extender.url} was not called; see --extenders."]
    assert decision["extenders"][0]["error"] == "not called in a dry run"
    group = json.loads(files.explain("podgroup/g", *options, "-o", "json").output)
    assert group["notes"] == [f"the extender {extender.url} was not called: pod groups are tried without extenders."]
    assert extender.asked == []


def test_what_an_extender_refuses_nothing_else_helps(tmp_path: Path, extender: Extender) -> None:
    """Changes are tried without it, where all would seem to help."""
    files = Files(tmp_path, node("n-0"))
    options = (*configured(files, extender.url), "--extenders")
    decision = json.loads(files.explain_pod(pod("web"), *options, "-o", "json").output)
    assert (decision["outcome"], "wouldFitIf" in decision) == ("unschedulable", False)
    decision = json.loads(files.explain_pod(pod("web"), *options, "--against", "n-0", "-o", "json").output)
    assert set(decision["against"]) == {"node", "rejected"}


def test_a_pod_that_an_extender_has_refused_does_not_fit_now(tmp_path: Path, extender: Extender) -> None:
    """A dry run does not ask it, and finds a node; that nothing has changed is not concealed."""
    files = Files(tmp_path)
    nodes = files.write("nodes.yaml", "nodes: [{name: n-0}]")
    up = Up(tmp_path, "--nodes-file", nodes, *configured(files, extender.url))
    try:
        up.create_pod("web", "1")
        until(lambda: up.get("/api/v1/namespaces/default/pods/web")["status"].get("conditions"))
        decision = json.loads(run_explain("web", "--kubeconfig", str(up.kubeconfig), "-o", "json").output)
    finally:
        up.stop()
    assert (decision["source"], decision["nodes"]["n-0"]["rejected"]["reasons"]) == ("scheduler", ["too noisy"])
    assert decision["notes"] == [f"the extender {extender.url} was not called; see --extenders."]


def test_the_password_of_an_extender_is_not_shown(files: Files) -> None:
    """Neither where it is said that it was not called, nor where it did not answer."""
    options = configured(files, "http://user:secret@127.0.0.1:1")
    for more in ((), ("--extenders",)):
        output = files.explain_pod(pod("web"), *options, *more).output
        assert "http://user:<redacted>@127.0.0.1:1" in output
        assert "secret" not in output


def test_an_extender_that_does_not_answer(files: Files) -> None:
    """The dry run comes to what an attempt would: an error that names it."""
    options = (*configured(files, "http://127.0.0.1:1"), "--extenders")
    decision = json.loads(files.explain_pod(pod("web"), *options, "-o", "json").output)
    assert (decision["outcome"], decision["chosen"]) == ("error", None)
    assert 'Post "http://127.0.0.1:1/filter"' in decision["message"]
    assert "http://127.0.0.1:1" in decision["extenders"][0]["error"]
