"""`kubestow scheduler` as a process: signals, exit codes, pages, and failover."""

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.apiserver.running import TOKEN, Client, Running
from support.free_ports import free_port
from support.integration.cluster import LEASE, PODS, node, pod
from support.integration.process import Process, create_hanging_binding, get_page
from support.polling import until

BRIEF = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
"""With such a short lease, a leader loses it when the machine stalls for a moment."""
LASTING = (
    "--leader-elect-lease-duration=300s",
    "--leader-elect-renew-deadline=200s",
    "--leader-elect-retry-period=500ms",
)


def _bound(client: Client, *names: str) -> bool:
    items = {item["metadata"]["name"]: item["spec"].get("nodeName") for item in client.get(PODS)["items"]}
    return all(items.get(name) for name in names)


def _leader(client: Client) -> str:
    status, lease = client.call("GET", LEASE)
    return (lease["spec"].get("holderIdentity") or "") if status == 200 else ""


def test_it_stops_gracefully(plane: Running, start: Callable[..., Process]) -> None:
    """SIGTERM: exit code 0, and the lease is released."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    client.create(PODS, pod("p"))
    scheduler = start()
    until(lambda: _bound(client, "p"), scheduler.output)
    assert _leader(client)
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0
    assert _leader(client) == ""
    assert "Requested to terminate, exiting" in scheduler.output()


def test_it_stops_gracefully_without_an_election(start: Callable[..., Process]) -> None:
    """Exit code 0 as well: it stopped as requested. Flags without effect are reported at the start."""
    scheduler = start("--leader-elect=false", "--http2-max-streams-per-connection=7")
    until(lambda: "Starting Kubernetes Scheduler" in scheduler.output(), scheduler.output)
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0
    warning = next(line for line in scheduler.output().splitlines() if "Flag has no effect" in line)
    assert "--http2-max-streams-per-connection" in warning
    assert "only HTTP/1.1 is served" in warning


def test_a_second_signal_ends_it_at_once(plane: Running, start: Callable[..., Process]) -> None:
    """While a binding is in progress, SIGINT ends it with 1."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    scheduler = start()
    create_hanging_binding(client)
    scheduler.send(signal.SIGTERM)
    until(lambda: "Stopping" in scheduler.output())
    scheduler.send(signal.SIGINT)
    assert scheduler.ended() == 1
    assert "Asked to stop again" in scheduler.output()


def test_a_lost_lease_ends_it(plane: Running, start: Callable[..., Process]) -> None:
    """Another instance holds the lease: exit code 1, at once."""
    client = plane.client()
    scheduler = start(*LASTING)
    until(lambda: _leader(client), scheduler.output)
    client.patch(LEASE, {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 60}})
    assert scheduler.ended() == 1
    assert "Leaderelection lost" in scheduler.output()
    assert _leader(client) == "usurper"


def _leader_and_standby(client: Client, start: Callable[..., Process]) -> tuple[Process, str, Process]:
    """Create a node, and start a leader with a short lease and a second instance; the name is the leader's."""
    client.create("/api/v1/nodes", node("n1"))
    first = start(*BRIEF)
    until(lambda: _leader(client), first.output)
    held = _leader(client)
    second = start(*LASTING)
    until(lambda: "Attempting to acquire leader lease" in second.output(), second.output)
    return first, held, second


def test_when_one_is_killed_the_other_takes_over(plane: Running, start: Callable[..., Process]) -> None:
    """kill -9: after the lease has expired the other one binds the pods."""
    client = plane.client()
    first, held, second = _leader_and_standby(client, start)
    first.send(signal.SIGKILL)
    first.ended()
    client.create(PODS, pod("p"))
    until(lambda: _bound(client, "p"), second.output)
    assert _leader(client) not in ("", held)


def test_a_leader_that_slept_too_long_writes_nothing(plane: Running, start: Callable[..., Process]) -> None:
    """Stopped for longer than its lease, with pods in its queue: it wakes up, writes nothing, and exits with 1."""
    client = plane.client()
    first, held, second = _leader_and_standby(client, start)
    first.send(signal.SIGSTOP)
    for i in range(20):
        client.create(PODS, pod(f"p{i}"))
    until(lambda: _bound(client, *(f"p{i}" for i in range(20))), second.output)
    first.send(signal.SIGCONT)
    assert first.ended() == 1
    assert "Leaderelection lost" in first.output()
    assert _leader(client) not in ("", held)
    assert "Error scheduling pod" not in second.output()


def test_it_logs_its_state(plane: Running, start: Callable[..., Process]) -> None:
    """SIGUSR2: nodes with their pods, the queue, and a comparison with the API server."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    client.create(PODS, pod("p"))
    client.create(PODS, pod("big", cpu="100"))
    scheduler = start("--leader-elect=false")
    until(lambda: _bound(client, "p"), scheduler.output)
    until(lambda: client.get(f"{PODS}/big")["status"].get("conditions"), scheduler.output)
    known = ('node="n1" pods=["default/p"]', '"unschedulable":["default/big"]', "Cache matches the API server")
    until(lambda: _logs(scheduler, *known), scheduler.output)


def _logs(scheduler: Process, *words: str) -> bool:
    """Return whether the dump contains these texts: the watch may deliver the scheduler's binding only later."""
    scheduler.send(signal.SIGUSR2)
    return all(word in scheduler.output() for word in words)


def test_it_serves_pages_about_itself(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """Health for all, the rest for users that the API server authorizes; with the certificate in --cert-dir."""
    client, port = plane.client(), free_port()
    client.create("/api/v1/nodes", node("n1"))
    client.create(PODS, pod("p"))
    kubeconfig = plane.control_plane.kubeconfig_path
    asked = (f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}")
    scheduler = start(
        f"--secure-port={port}", "--bind-address=127.0.0.1", "--kube-api-qps=77", f"--cert-dir={tmp_path}", *asked
    )
    trusted = tmp_path / "kube-scheduler.crt"
    until(lambda: _bound(client, "p"), scheduler.output)
    until(lambda: "Serving securely" in scheduler.output(), scheduler.output)
    assert get_page(port, trusted, "/readyz")[0] == 200
    assert get_page(port, trusted, "/metrics", "no-such-token")[0] == 401
    scheduled = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1\n'
    until(lambda: scheduled in get_page(port, trusted, "/metrics", TOKEN)[1], scheduler.output)
    assert "\nkube-api-qps=77\n" in get_page(port, trusted, "/flagz", TOKEN)[1]
    configuration = json.loads(get_page(port, trusted, "/configz", TOKEN)[1])["componentconfig"]
    assert configuration["clientConnection"]["qps"] == 77
    assert get_page(port, trusted, "/ui/", TOKEN)[0] == 404


def test_it_serves_the_page_on_request(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """--ui: the page for all, its contents for users with read access, and dry runs with the current plugins."""
    client, port = plane.client(), free_port()
    client.create("/api/v1/nodes", node("n1"))
    client.create(PODS, pod("p"))
    client.create(PODS, pod("big", "99"))
    kubeconfig = plane.control_plane.kubeconfig_path
    asked = (f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}")
    where = (f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={tmp_path}")
    scheduler = start("--ui", *where, *asked)
    trusted, api = tmp_path / "kube-scheduler.crt", "/ui/api/v1"

    def get(path: str) -> Any:
        status, text = get_page(port, trusted, api + path, TOKEN)
        assert status == 200, text
        return json.loads(text)

    until(lambda: _bound(client, "p"), scheduler.output)
    until(lambda: "Serving securely" in scheduler.output(), scheduler.output)
    until(lambda: get("/cluster")["pods"] == [1], scheduler.output)
    until(lambda: [row[1:3] for row in get("/queue")["rows"]] == [["default/big", "unschedulable"]], scheduler.output)
    assert "<script type=" in get_page(port, trusted, "/ui/")[1]
    assert get_page(port, trusted, f"{api}/cluster")[0] == 403
    assert get_page(port, trusted, f"{api}/cluster", "no-such-token")[0] == 401
    assert get("/decisions/default/p")["decision"]["chosen"] == "n1"
    assert get("/explain/default/big")["wouldFitIf"]
    assert get("")["name"] == "kubestow scheduler"
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0


def test_a_port_in_use_is_reported(start: Callable[..., Process]) -> None:
    """Exit code 1, with the flag to change."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        scheduler = start(f"--secure-port={taken.getsockname()[1]}", "--bind-address=127.0.0.1")
        assert scheduler.ended() == 1
    assert "choose another with --secure-port" in scheduler.output()


def test_a_legacy_policy_is_reported_once(plane: Running, start: Callable[..., Process], tmp_path: Path) -> None:
    """The scheduler applies it, and warns that it is legacy."""
    file = tmp_path / "policy.json"
    labels = {"labels": ["retired"], "presence": False}
    predicates = [{"name": "working", "argument": {"labelsPresence": labels}}]
    file.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": predicates}))
    client = plane.client()
    client.create("/api/v1/nodes", node("n1", retired="2020"))
    client.create("/api/v1/nodes", node("n2"))
    for number in range(3):
        client.create(PODS, pod(f"p{number}"))
    scheduler = start(f"--policy-config-file={file}")
    until(lambda: _bound(client, "p0", "p1", "p2"), scheduler.output)
    assert {item["spec"]["nodeName"] for item in client.get(PODS)["items"]} == {"n2"}
    scheduler.send(signal.SIGTERM)
    assert scheduler.ended() == 0
    assert scheduler.output().count("Policy is legacy") == 1
