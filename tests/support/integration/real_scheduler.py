"""`kubestow scheduler` as a process at a real kube-apiserver, and fixtures that start both."""

import http.client
import signal
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.free_ports import free_port
from support.integration.process import Process
from support.integration.real_control_plane import RealControlPlane, control_plane, token_of
from support.polling import PATIENCE

PODS = "/api/v1/namespaces/default/pods"


QUICK = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)


@pytest.fixture(scope="module")
def plane(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    running = control_plane(server, tmp_path_factory.mktemp("real"))
    yield running
    running.close()


class Scheduler(Process):
    """A scheduler process with the rights of a user."""

    def __init__(self, plane: RealControlPlane, folder: Path, name: str, user: str, token: str, *flags: str) -> None:
        kubeconfig = plane.kubeconfig(user, token)
        self.port = free_port()
        super().__init__(
            folder,
            name,
            kubeconfig,
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            "-v=2",
            *flags,
        )

    def output(self) -> str:
        return f"--- scheduler\n{super().output()[-5000:]}"

    def get(self, path: str, user: str = "", token: str = "") -> tuple[int, str]:
        token = token or (token_of(user) if user else "")
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.ended()


Start = Callable[..., Scheduler]


@pytest.fixture
def start(plane: RealControlPlane, tmp_path: Path) -> Iterator[Start]:
    started: list[Scheduler] = []

    def begin(*flags: str, user: str = "system:kube-scheduler", token: str = "") -> Scheduler:
        started.append(Scheduler(plane, tmp_path, f"scheduler{len(started)}", user, token, *flags))
        return started[-1]

    yield begin
    for scheduler in started:
        scheduler.close()
