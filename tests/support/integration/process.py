"""`kubestow scheduler` as a process at an embedded control plane."""

import http.client
import signal
import ssl
import subprocess
import sys
from pathlib import Path

from support.apiserver.running import Client
from support.integration.cluster import PODS, pod
from support.polling import PATIENCE, until


class Process:
    """A scheduler process."""

    def __init__(self, folder: Path, name: str, kubeconfig: Path, *flags: str) -> None:
        self._log = folder / f"{name}.log"
        command = [sys.executable, "-m", "kubestow", "scheduler", f"--kubeconfig={kubeconfig}", *flags]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def create_hanging_binding(client: Client) -> None:
    """Create a pod whose volume is never provisioned."""
    client.create(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "slow"},
            "provisioner": "example.com/never",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "slow",
    }
    client.create(
        claims, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    )
    client.create(PODS, pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    annotated = "volume.kubernetes.io/selected-node"
    until(lambda: annotated in (client.get(f"{claims}/c")["metadata"].get("annotations") or {}))


def get_page(port: int, trusted: Path, path: str, token: str = "") -> tuple[int, str]:
    context = ssl.create_default_context(cafile=str(trusted))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text
