"""The service account of the pod this process runs in: the address is in the environment, token and CA are in files."""

import os
from collections.abc import Mapping

from kubestow.client.access import Access, Identity
from kubestow.client.errors import CredentialsError
from kubestow.client.tls import TlsSettings

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


def runs_in_cluster(environ: Mapping[str, str], folder: str = FOLDER) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and os.path.isfile(os.path.join(folder, "token"))


def in_cluster_access(environ: Mapping[str, str], folder: str = FOLDER) -> Access:
    """Return the access of the service account. Raises CredentialsError if this is not a pod with a service account."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    for variable, value in (("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port)):
        if not value:
            raise CredentialsError("environment", variable, "not set: this is not a pod of a cluster")
    source = f"service account in {folder}"
    for name in ("token", "ca.crt"):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            raise CredentialsError(source, name, "no such file: does the pod mount its service account token?")
    return Access(
        source=source,
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        server_field="KUBERNETES_SERVICE_HOST",
        tls=TlsSettings(source=source, ca_file=os.path.join(folder, "ca.crt")),
        identity=Identity(token_file=os.path.join(folder, "token")),
    )
