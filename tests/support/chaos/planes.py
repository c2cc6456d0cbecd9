"""API servers that can be killed and restarted: the embedded one on disk, and a real one if available."""

import http.client
import json
import os
import signal
import ssl
import threading
import time
from pathlib import Path
from typing import Any, Protocol

import yaml

from support.chaos.fork_server import ForkedProcess, ProcessSpec, fork_server
from support.free_ports import free_port
from support.integration.real_control_plane import RealControlPlane, token_of
from support.polling import PATIENCE, until

SCHEDULERS = ("s1", "s2", "s3")
AUDITED = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete]
"""


class Plane(Protocol):
    """A control plane that stores the objects."""

    port: int
    ca: Path
    audit_log: Path
    starts: int

    def token(self, user: str) -> str: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...


class Embedded:
    """`kubestow apiserver` with its objects on disk."""

    def __init__(self, folder: Path, *, flags: tuple[str, ...] = (), file_size: int = 0) -> None:
        """`file_size` limits the size of files, as on a full disk; 0: no limit."""
        self.folder = folder
        self.port = free_port()
        self.ca = folder / "data" / "pki" / "ca.crt"
        self.audit_log = folder / "audit.jsonl"
        self.starts = 0
        self.file_size = file_size
        self._flags = flags
        self._log = folder / "apiserver.log"
        self.process: ForkedProcess | None = None
        tokens = folder / "tokens.csv"
        tokens.write_text("".join(f'{self.token(user)},{user},{user},"system:masters"\n' for user in SCHEDULERS))

    def token(self, user: str) -> str:
        return f"token-of-{user}"

    def start(self) -> None:
        command = ["apiserver", f"--port={self.port}"]
        command += [f"--data-dir={self.folder / 'data'}", f"--token={self.token('admin')}"]
        command += [f"--token-file={self.folder / 'tokens.csv'}", f"--audit-log={self.audit_log}"]
        command += ["--no-kubelets", "--controllers=none", *self._flags]
        limits = {"RLIMIT_FSIZE": self.file_size} if self.file_size else {}
        self.process = fork_server().fork(ProcessSpec(command, str(self._log), limits))
        self.starts += 1
        until(self._is_ready, lambda: self.output()[-2000:])

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.output()
        api = Api(self)
        try:
            return api.call("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            api.close()

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()


class Real:
    """kube-apiserver and etcd."""

    def __init__(self, assets: Path, folder: Path) -> None:
        self.audit_log = folder / "audit.jsonl"
        policy = folder / "audit.yaml"
        policy.write_text(AUDITED)
        flags = (f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}")
        self._plane = RealControlPlane(assets, folder, *flags, users=dict.fromkeys(SCHEDULERS, "system:masters"))
        self.port = self._plane.port
        self.ca = folder / "ca.crt"
        self.starts = 1

    def token(self, user: str) -> str:
        return token_of(user)

    def start(self) -> None:
        if self.starts > 1:
            self._plane.start_api_server()
        self.starts += 1

    def kill(self) -> None:
        self._plane.kill_api_server()

    def close(self) -> None:
        self._plane.close()


class Api:
    """A plain client that shares no code with the scheduler's."""

    def __init__(self, plane: Plane, user: str = "admin") -> None:
        self._plane = plane
        self._user = user
        self._connection: http.client.HTTPSConnection | None = None
        self._lock = threading.Lock()

    def connect(self, timeout: float = PATIENCE) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self._plane.ca))
        return http.client.HTTPSConnection("127.0.0.1", self._plane.port, context=context, timeout=timeout)

    def headers(self, content_type: str = "application/json") -> dict[str, str]:
        return {"Authorization": f"Bearer {self._plane.token(self._user)}", "Content-Type": content_type}

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        """Send a request; return status and decoded body. Raises if the connection breaks."""
        with self._lock:
            try:
                self._connection = self._connection or self.connect()
                data = None if body is None else json.dumps(body)
                self._connection.request(method, path, data, self.headers(content_type))
                with self._connection.getresponse() as response:
                    text = response.read()
            except (OSError, http.client.HTTPException):
                if self._connection is not None:
                    self._connection.close()
                self._connection = None
                raise
        return response.status, json.loads(text) if text.startswith(b"{") else text.decode()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def retry(self, method: str, path: str, body: Any = None, seconds: float = PATIENCE) -> tuple[int, Any]:
        """Send a request, and repeat it while the server is down or overloaded."""
        end = time.monotonic() + seconds
        while True:
            try:
                status, answer = self.call(method, path, body)
            except (OSError, http.client.HTTPException):
                status, answer = 0, "no answer"
            if status not in (0, 429, 500, 503, 504) or time.monotonic() > end:
                return status, answer
            time.sleep(0.05)


def kubeconfig(plane: Plane, user: str, server: str, file: Path) -> Path:
    """Write a kubeconfig for a user; `server` is the address of the plane or of a proxy."""
    cluster: dict[str, Any] = {"server": server}
    if server.startswith("https"):
        cluster["certificate-authority"] = str(plane.ca)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": plane.token(user)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": user}}],
        "current-context": "c",
    }
    file.write_text(yaml.safe_dump(content))
    return file


class Scheduler:
    """`kubestow scheduler` as a process."""

    def __init__(self, folder: Path, name: str, config: Path, *flags: str, skew: float = 0.0) -> None:
        """`skew`: seconds by which its clock is wrong."""
        self.name = name
        self._log = folder / f"{name}.log"
        command = ["scheduler", f"--kubeconfig={config}", "--secure-port=0", *flags]
        self.process = fork_server().fork(ProcessSpec(command, str(self._log), skew=skew))

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        if self.is_running:
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        if self.is_running:
            self.process.kill()
        self.process.wait()

    def data_bytes(self) -> int:
        """Return the size that RLIMIT_DATA limits."""
        return self._kibibytes("VmData") << 10

    def memory_and_files(self) -> tuple[int, int]:
        """Return resident KiB, and the number of open descriptors."""
        return self._kibibytes("VmRSS"), len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def _kibibytes(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))
