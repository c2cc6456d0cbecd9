"""`kubestow up` in a process of its own, and a way to ask its API server."""

import base64
import http.client
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from support.polling import PATIENCE

COMMAND = (sys.executable, "-m", "kubestow", "up")
"""Seconds."""


class Up:
    """A cluster that has said it is up."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.process = subprocess.Popen(
            [*COMMAND, "--port", "0", "--kubeconfig", str(self.kubeconfig), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("Ctrl-C"):
                return
        raise AssertionError(self.process.communicate()[1])

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Send a signal; returns exit code, output and errors."""
        self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, errors

    @contextmanager
    def _asking(self, method: str, path: str, body: Any = None) -> Iterator[http.client.HTTPResponse]:
        """Ask the API server as the kubeconfig says."""
        written = yaml.safe_load(self.kubeconfig.read_text())
        cluster = written["clusters"][0]["cluster"]
        server = urlsplit(cluster["server"])
        assert server.hostname is not None
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        connection = http.client.HTTPSConnection(server.hostname, server.port, context=context, timeout=PATIENCE)
        token = written["users"][0]["user"]["token"]
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        with closing(connection), connection.getresponse() as response:
            yield response

    def get(self, path: str) -> Any:
        """Read something that must be there."""
        with self._asking("GET", path) as response:
            body = json.loads(response.read())
        assert response.status == 200, body
        return body

    def create_pod(self, name: str, cpu: str = "100m") -> None:
        """Make a pod that asks for that much."""
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        self.create("/api/v1/namespaces/default/pods", pod)

    def create(self, path: str, body: Any) -> None:
        """Make an object."""
        with self._asking("POST", path, body) as response:
            assert response.status == 201, response.read()

    def delete_at_once(self, path: str) -> None:
        """Remove an object, without a period of grace."""
        with self._asking("DELETE", path, {"gracePeriodSeconds": 0}) as response:
            assert response.status == 200, response.read()

    def issue_token(self, account: str) -> str:
        """A token of a service account, which may do next to nothing."""
        with self._asking(
            "POST", f"/api/v1/namespaces/default/serviceaccounts/{account}/token", {"spec": {}}
        ) as response:
            issued = json.loads(response.read())
        assert response.status == 201, issued
        token: str = issued["status"]["token"]
        return token

    def pods_when(self, phase: str, count: int) -> dict[str, Any]:
        """Wait until a number of pods are in a phase; return them by name."""
        found: dict[str, Any] = {}
        for event in self._watch(f"/api/v1/pods?watch=true&timeoutSeconds={PATIENCE:.0f}"):
            pod = event["object"]
            if pod["status"].get("phase") == phase:
                found[pod["metadata"]["name"]] = pod
                if len(found) == count:
                    return found
        raise AssertionError(f"{len(found)} pods are {phase} after {PATIENCE:g} s")

    def _watch(self, path: str) -> Iterator[Any]:
        with self._asking("GET", path) as response:
            for line in response:
                yield json.loads(line)


def fails(*arguments: str) -> list[str]:
    """Run a cluster that cannot start; returns what it says, line by line."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    return done.stderr.splitlines()
