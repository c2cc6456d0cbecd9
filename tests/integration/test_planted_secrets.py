"""Planted secrets do not occur in logs, pages, metrics, records or recordings."""

import gzip
import json
import re
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from support.apiserver.running import TOKEN, Running
from support.free_ports import free_port
from support.integration.cluster import PODS, node, pod
from support.integration.process import Process
from support.polling import PATIENCE, until

SCHEDULERS_TOKEN = "planted-token-of-the-scheduler"
READERS_TOKEN = "planted-token-of-a-reader"
VALUE = "planted-value-of-a-variable"
PASSWORD = "planted-password-of-a-proxy"
SECRET = "planted-content-of-a-secret"
PLANTED = (SCHEDULERS_TOKEN, READERS_TOKEN, VALUE, PASSWORD, SECRET, TOKEN, "PRIVATE KEY")
PAGES = (
    "/metrics",
    "/configz",
    "/flagz",
    "/statusz",
    "/debug/decisions",
    "/debug/decisions/default/p",
    "/readyz?verbose",
    "/ui/api/v1/configuration",
    "/ui/api/v1/cluster",
    "/ui/api/v1/queue",
    "/ui/api/v1/nodes/n1",
    "/ui/api/v1/decisions/default/p",
    "/ui/api/v1/explain/default/too-big",
)

TOKENS = f'{SCHEDULERS_TOKEN},s,1,"system:masters"\n{READERS_TOKEN},r,2,"system:masters"\n'


def _kubeconfig(plane: Running, path: Path) -> Path:
    content = yaml.safe_load(plane.control_plane.kubeconfig_path.read_text())
    content["users"] = [{"name": content["users"][0]["name"], "user": {"token": SCHEDULERS_TOKEN}}]
    path.write_text(yaml.safe_dump(content))
    return path


def _read(port: int, path: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(
        f"https://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {READERS_TOKEN}"}
    )
    with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:  # noqa: S310
        text: str = answer.read().decode()
        return text


def _found(port: int, path: str) -> str:
    """Return the page; "" until it has content, which is updated once a second."""
    try:
        return _read(port, path)
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        error.close()
        return ""


def _unpacked(recording: Path) -> str:
    """Return the contents of a recording; "" while a member is being written."""
    try:
        return gzip.decompress(recording.read_bytes()).decode()
    except EOFError:
        return ""


@pytest.mark.control_plane(tokens=TOKENS)
def test_no_secret_is_exposed(plane: Running, tmp_path: Path) -> None:
    """At the highest verbosity, with records, a decision log and a recorder running."""
    admin, port = plane.client(), free_port()
    admin.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"k": SECRET}})
    admin.create("/api/v1/nodes", node("n1"))
    config = _kubeconfig(plane, tmp_path / "planted.kubeconfig")
    recording, decisions = tmp_path / "recording", tmp_path / "decisions.jsonl"
    settings = tmp_path / "config.yaml"
    extender = {"urlPrefix": f"http://user:{PASSWORD}@127.0.0.1:1/", "filterVerb": "filter", "ignorable": True}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    settings.write_text(
        yaml.safe_dump(kind | {"clientConnection": {"kubeconfig": str(config)}, "extenders": [extender]})
    )
    flags = (f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}", "-v=10")
    more = (f"--secure-port={port}", f"--decision-log={decisions}", f"--config={settings}", "--ui")
    command = [sys.executable, "-m", "kubestow", "record", str(recording), f"--kubeconfig={config}"]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    scheduler = Process(tmp_path, "scheduler", config, *flags, *more)
    try:
        planted = pod("p")
        planted["spec"]["containers"][0]["env"] = [{"name": "A", "value": VALUE}]
        admin.create(PODS, planted)
        admin.create(PODS, pod("too-big", cpu="64") | {"spec": pod("x", cpu="64")["spec"]})
        until(lambda: admin.get(f"{PODS}/p")["spec"].get("nodeName"), scheduler.output)
        until(lambda: decisions.exists() and "default/p" in decisions.read_text())
        pages = {path: until(partial(_found, port, path), scheduler.output) for path in PAGES}
        until(lambda: recording.exists() and "too-big" in _unpacked(recording))
    finally:
        scheduler.close()
        recorder.send_signal(signal.SIGINT)
        output, _ = recorder.communicate(timeout=PATIENCE)
    explained = subprocess.run(
        [sys.executable, "-m", "kubestow", "explain", "default/p", f"--kubeconfig={config}", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    places = pages | {
        "the scheduler's log": scheduler.output(),
        "the decision log": decisions.read_text(),
        "the recording": _unpacked(recording),
        "the recorder": output,
        "explain": explained.stdout + explained.stderr,
    }
    assert all(places.values())
    found = {(place, planted) for place, text in places.items() for planted in PLANTED if re.search(planted, text)}
    assert found == set()
    assert json.loads(places["/configz"])
