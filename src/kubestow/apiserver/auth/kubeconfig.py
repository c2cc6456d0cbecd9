"""The kubeconfig with which kubectl and other clients connect to the server.

A file is replaced only if it was written here and its server no longer runs.
"""

import base64
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from kubestow.apiserver.auth.certificates import Certificates
from kubestow.apiserver.files import replace_file
from kubestow.client.kubeconfig import SCHEDULER_EXTENSION

_NAME, _USER = "kubestow", "admin"
_ANSWER_SECONDS = 2.0


class KubeconfigError(Exception):
    """A file must not be overwritten; the message contains the reason and a remedy."""


def require_replaceable(path: Path, ca: Path) -> None:
    """Raise KubeconfigError if a path is the kubeconfig of another running server, or a file written by others.

    `ca` is the authority of this server, whose earlier kubeconfig is replaceable.
    """
    if not path.exists() or not (content := path.read_bytes().strip()):
        return
    try:
        tree = yaml.safe_load(content)
        (cluster,), (context,), (user,) = tree["clusters"], tree["contexts"], tree["users"]
        is_own = (cluster["name"], context["name"], user["name"]) == (_NAME, _NAME, _USER)
        url, authority = (
            cluster["cluster"]["server"],
            base64.b64decode(cluster["cluster"]["certificate-authority-data"]),
        )
    except (yaml.YAMLError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
        is_own = False
    if not is_own:
        advice = "name another file with --kubeconfig, or remove this one"
        raise KubeconfigError(f"{path} was not written by Kubestow and is not overwritten; {advice}")
    if authority != ca.read_bytes() and _runs(url, authority):
        advice = "stop it, or name another file with --kubeconfig and another port with --port"
        raise KubeconfigError(f"{path} is the kubeconfig of the cluster that runs at {url}; {advice}")


def _runs(url: str, authority: bytes) -> bool:
    """Return whether a server with a certificate of the authority answers, or something accepts and remains silent."""
    try:
        # The address of the file is trusted, whatever names the certificate has.
        trusted = ssl.create_default_context(cadata=authority.decode())
        trusted.check_hostname = False
        server = urlsplit(url)
        with (
            socket.create_connection((server.hostname or "", server.port or 443), _ANSWER_SECONDS) as connection,
            trusted.wrap_socket(connection),
        ):
            return True
    except TimeoutError:
        return True
    except (OSError, ValueError):
        return False


def write(path: Path, url: str, certificates: Certificates, token: str) -> None:
    """Write a kubeconfig for the administrator, readable only by its owner."""

    def data(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": url, "certificate-authority-data": data(certificates.ca)}}],
        "users": [
            {
                "name": _USER,
                "user": {
                    "client-certificate-data": data(certificates.admin),
                    "client-key-data": data(certificates.admin_key),
                    "token": token,
                },
            }
        ],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _USER}}],
        "current-context": _NAME,
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
