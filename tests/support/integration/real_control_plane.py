"""An API server with TLS, tokens and RBAC, without other components: a real one, or the embedded one as a process.

The real one is etcd and kube-apiserver from KUBEBUILDER_ASSETS. There are no controllers unless a test starts some:
tests that need their work (binding a claim to its volume) do it themselves. Two admission plugins are disabled, as no
controller creates service accounts for namespaces or removes the not-ready taint from new nodes.
"""

import http.client
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from support.client.authority import Authority
from support.free_ports import free_port
from support.polling import PATIENCE, until

USERS = {
    "admin": "system:masters",
    "system:kube-scheduler": "",
    "monitor": "",
    "nobody": "",
}
"""Users and their groups; a user's token is token-NAME."""


def token_of(user: str) -> str:
    return f"token-{user.replace(':', '-')}"


class RefusedError(Exception):
    """The API server rejected the request."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class RealControlPlane:
    """Runs until `close`; `kill_api_server` and `start_api_server` restart the API server."""

    def __init__(self, assets: Path, folder: Path, *flags: str, users: dict[str, str] | None = None) -> None:
        """`flags` are additional flags of kube-apiserver, `users` additional users and their groups."""
        self._assets = assets
        self._flags = flags
        self._users = USERS | (users or {})
        self._folder = folder
        self._etcd_port, self._etcd_peer_port = free_port(), free_port()
        self.port = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._write_credentials()
        self._start_etcd()
        self.start_api_server()

    # Credentials

    def _write_credentials(self) -> None:
        authority = Authority()
        self._file("ca.crt").write_bytes(authority.pem)
        certificate, key = authority.issue("kube-apiserver", "127.0.0.1", "localhost")
        self._file("server.crt").write_bytes(certificate)
        self._file("server.key").write_bytes(key)
        signing = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._file("sa.key").write_bytes(
            signing.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        self._file("sa.pub").write_bytes(
            signing.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        lines = [
            f"{token_of(user)},{user},{number}" + (f',"{groups}"' if groups else "")
            for number, (user, groups) in enumerate(self._users.items())
        ]
        self._file("tokens.csv").write_text("\n".join(lines) + "\n")

    def _file(self, name: str) -> Path:
        return self._folder / name

    def kubeconfig(self, user: str, token: str = "") -> Path:
        """Write a kubeconfig for a user, with the given token or the one of the token file."""
        path = self._file(f"{user.replace(':', '-')}.kubeconfig")
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self._file("ca.crt"))}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token or token_of(user)}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
            "current-context": "real",
        }
        path.write_text(yaml.safe_dump(content))
        return path

    # Processes

    def _run(self, name: str, *arguments: str) -> None:
        self._start_process(name, str(self._assets / name), *arguments)

    def _start_process(self, name: str, *command: str) -> None:
        with self._file(f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._etcd_peer_port}"
        self._run(
            "etcd",
            f"--data-dir={self._file('etcd')}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )

    def start_api_server(self) -> None:
        """Start or restart it on the same port, and wait until it is ready."""
        self._run_api_server()
        until(self._is_ready, lambda: self._tail("etcd") + self._tail("kube-apiserver"))

    def _run_api_server(self) -> None:
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self._folder}",
            f"--tls-cert-file={self._file('server.crt')}",
            f"--tls-private-key-file={self._file('server.key')}",
            f"--token-auth-file={self._file('tokens.csv')}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._file('sa.pub')}",
            f"--service-account-signing-key-file={self._file('sa.key')}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            *self._flags,
        )

    def start_controllers(self, *names: str) -> None:
        """Start kube-controller-manager; skip the test if the folder has none."""
        if not (self._assets / "kube-controller-manager").exists():
            pytest.skip(f"{self._assets} has no kube-controller-manager, which runs {', '.join(names)}")
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--controllers={','.join(names)}",
            "--leader-elect=false",
            "--secure-port=0",
            *(flag for flag in self._flags if flag.startswith("--feature-gates")),
        )

    def _is_ready(self) -> bool:
        for name, process in self._processes.items():
            assert process.poll() is None, f"{name} has ended:\n{self._tail(name)}"
        try:
            self.get("/readyz")
            self.get("/api/v1/namespaces/default")
        except (OSError, http.client.HTTPException, RefusedError):
            return False
        return True

    def _tail(self, name: str) -> str:
        log = self._file(f"{name}.log")
        return f"--- {name}\n{log.read_text(errors='replace')[-3000:]}\n" if log.exists() else ""

    def kill_api_server(self) -> None:
        """Kill it without a shutdown, as in a crash."""
        process = self._processes.pop("kube-apiserver")
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()

    # Requests, as the administrator

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(str(self._file("ca.crt")))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {token_of('admin')}", "Content-Type": content_type}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status >= 300:
            raise RefusedError(response.status, text)
        return json.loads(text) if text.startswith("{") else text

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def create(self, path: str, body: Any) -> Any:
        return self.call("POST", path, body)

    def patch(self, path: str, body: Any) -> Any:
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        self.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})


class EmbeddedControlPlane(RealControlPlane):
    """The embedded API server as a process, with its objects on disk."""

    _controllers = "none"

    def start_controllers(self, *names: str) -> None:
        self._controllers = ",".join(names)
        self.kill_api_server()
        self.start_api_server()

    def _start_etcd(self) -> None:
        pass

    def _run_api_server(self) -> None:
        data = self._file("data")
        self._start_process(
            "kube-apiserver",
            *(sys.executable, "-m", "kubestow", "apiserver"),
            f"--port={self.port}",
            f"--data-dir={data}",
            f"--kubeconfig={self._file('embedded.kubeconfig')}",
            f"--token-file={self._file('tokens.csv')}",
            "--authorization-mode=RBAC",
            "--no-kubelets",
            f"--controllers={self._controllers}",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            *(flag for flag in self._flags if not flag.startswith("--runtime-config")),
        )
        until((data / "pki/ca.crt").exists)
        self._file("ca.crt").write_bytes((data / "pki/ca.crt").read_bytes())


EMBEDDED = Path("embedded")
"""In place of a folder with programs."""


def control_plane(assets: Path, folder: Path, *flags: str, users: dict[str, str] | None = None) -> RealControlPlane:
    """Start an API server with the programs in `assets`, or the embedded one."""
    kind = EmbeddedControlPlane if assets == EMBEDDED else RealControlPlane
    return kind(assets, folder, *flags, users=users)


def folders() -> list[Path]:
    """Return the folders with etcd and kube-apiserver, of one or several versions."""
    named = os.environ.get("KUBEBUILDER_ASSETS", "").split(os.pathsep)
    return [Path(name) for name in dict.fromkeys(named) if name]


def needs_version(assets: Path, minor: int, what: str, program: str = "kube-apiserver") -> None:
    """Skip a test for features that an older server does not have; the embedded one has all."""
    if assets == EMBEDDED:
        return
    output = subprocess.run([assets / program, "--version"], capture_output=True, text=True, check=True).stdout
    found = int(output.split(".")[1])
    if found < minor:
        pytest.skip(f"{program} v1.{found} has no {what}; v1.{minor} is the first")


def _complete(folder: Path) -> Path:
    missing = [name for name in ("etcd", "kube-apiserver") if not (folder / name).exists()]
    if missing:
        pytest.fail(f"KUBEBUILDER_ASSETS: {folder} has no {' and no '.join(missing)}", pytrace=False)
    return folder


_REAL = [pytest.param(folder, id=folder.name, marks=pytest.mark.real) for folder in folders()]
_NONE = pytest.param(None, id="none", marks=pytest.mark.real)


@pytest.fixture(scope="session", params=_REAL or [_NONE])
def assets(request: pytest.FixtureRequest) -> Path:
    """Return a folder with etcd and kube-apiserver; each test runs with every folder in KUBEBUILDER_ASSETS."""
    if request.param is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    return _complete(request.param)


@pytest.fixture(scope="session", params=[pytest.param(EMBEDDED, id="embedded"), *_REAL])
def server(request: pytest.FixtureRequest) -> Path:
    """Return where the API server is: EMBEDDED, and then every folder in KUBEBUILDER_ASSETS."""
    found: Path = request.param
    return found if found == EMBEDDED else _complete(found)
