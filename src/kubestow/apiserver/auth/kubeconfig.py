"""The kubeconfig with which kubectl and other clients connect to the server."""

import base64
from pathlib import Path

import yaml

from kubestow.apiserver.auth.certificates import Certificates
from kubestow.apiserver.files import replace_file
from kubestow.client.kubeconfig import SCHEDULER_EXTENSION


def write(path: Path, url: str, certificates: Certificates, token: str) -> None:
    """Write a kubeconfig for the administrator, readable only by its owner."""

    def data(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "kubestow", "cluster": {"server": url, "certificate-authority-data": data(certificates.ca)}}
        ],
        "users": [
            {
                "name": "admin",
                "user": {
                    "client-certificate-data": data(certificates.admin),
                    "client-key-data": data(certificates.admin_key),
                    "token": token,
                },
            }
        ],
        "contexts": [{"name": "kubestow", "context": {"cluster": "kubestow", "user": "admin"}}],
        "current-context": "kubestow",
        "preferences": {},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, yaml.safe_dump(config, sort_keys=False).encode())


def add_scheduler(path: Path, url: str) -> None:
    """Add the address at which the scheduler serves its pages, for commands that read its decisions."""
    config = yaml.safe_load(path.read_bytes())
    extension = {"name": SCHEDULER_EXTENSION, "extension": {"server": url}}
    config["clusters"][0]["cluster"]["extensions"] = [extension]
    replace_file(path, yaml.safe_dump(config, sort_keys=False).encode())
