"""kubeconfig files: read, merged, and reduced to the access of one context.

If several files define a cluster, user, context or current-context, the first one wins. Paths in a file are relative to
its folder; data takes precedence over files. Error messages name the file and the field.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from kubestow.api.files.errors import DocumentError
from kubestow.api.files.yaml_documents import yaml_documents
from kubestow.client.access import Access, Identity, override_server
from kubestow.client.errors import CredentialsError
from kubestow.client.incluster import in_cluster_access, runs_in_cluster
from kubestow.client.tls import Certificate, TlsSettings, read_pem

if TYPE_CHECKING:
    from kubestow.client.execplugin import ExecPlugin
    from kubestow.client.oidc import OidcSettings

SCHEDULER_EXTENSION = "kubestow.dev/scheduler"
"""The extension of a cluster that contains the URL of its scheduler's pages."""
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_PLACE = r"(?s)^(?P<problem>.*?) - at `\$\.?(?P<field>.*?)`$"


class _Extension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: bytes | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[_Extension] | None = None


class _EnvVar(msgspec.Struct):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _AuthProvider(msgspec.Struct):
    name: str = ""
    config: dict[str, str] | None = None


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: bytes | None = None
    client_key: str = ""
    client_key_data: bytes | None = None
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: _AuthProvider | None = None
    act_as: str = msgspec.field(default="", name="as")
    act_as_uid: str = msgspec.field(default="", name="as-uid")
    act_as_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    act_as_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context | None = None


class _File(msgspec.Struct, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


T = TypeVar("T")


class _Found(msgspec.Struct, Generic[T]):
    """A named entry and the file that contains it."""

    path: Path
    entry: T


def find_access(
    kubeconfig: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    context: str = "",
    advice: str = "give --kubeconfig",
) -> Access:
    """Return the access that the flags and the environment name. Raises CredentialsError if there is none.

    `context` is used instead of the current context of a kubeconfig. `advice` is how to name a kubeconfig.
    """
    found: Access | None = None
    # Unlike Path.expanduser this does not fail for a user without an entry in /etc/passwd, as in containers.
    home = Path(os.path.expanduser(environ.get("HOME") or "~")) / ".kube" / "config"
    if kubeconfig:
        found = load_kubeconfig([kubeconfig], must_exist=True, context=context)
    elif environ.get("KUBECONFIG"):
        found = load_kubeconfig(environ["KUBECONFIG"].split(os.pathsep), context=context)
    elif runs_in_cluster(environ) and not context:
        found = in_cluster_access(environ)
    elif home.is_file():
        found = load_kubeconfig([str(home)], context=context)
    if master:
        return override_server(found, master)
    if found is None:
        raise CredentialsError(
            "credentials", "", f"none found: {advice}, set KUBECONFIG, run in a pod, or write {home}"
        )
    return found


def load_kubeconfig(paths: Sequence[str], *, must_exist: bool = False, context: str = "") -> Access:
    """Read and merge the files, and return the access of a context, by default the current one.

    Missing files are skipped unless `must_exist` is set or all are missing. Raises CredentialsError.
    """
    field = "--context" if context else "current-context"
    given = [Path(path) for path in dict.fromkeys(filter(None, paths))]
    must_exist = must_exist or not any(path.exists() for path in given)
    files = [(path, _read(path, must_exist)) for path in given]
    source = os.pathsep.join(str(path) for path, _ in files)
    clusters: dict[str, _Found[_Cluster]] = {}
    users: dict[str, _Found[_User]] = {}
    contexts: dict[str, _Found[_Context]] = {}
    for path, file in files:
        context = context or file.current_context
        for cluster in file.clusters or ():
            clusters.setdefault(cluster.name, _Found(path, cluster.cluster or _Cluster()))
        for user in file.users or ():
            users.setdefault(user.name, _Found(path, user.user or _User()))
        for named in file.contexts or ():
            contexts.setdefault(named.name, _Found(path, named.context or _Context()))
    if not context:
        raise CredentialsError(source, "current-context", "not set; `kubectl config use-context NAME` sets it")
    chosen = _look_up(contexts, context, source, field, "context")
    where = f"contexts[{context}].context"
    cluster_found = _look_up(clusters, chosen.entry.cluster, str(chosen.path), f"{where}.cluster", "cluster")
    user_found = (
        _look_up(users, chosen.entry.user, str(chosen.path), f"{where}.user", "user")
        if chosen.entry.user
        else _Found(chosen.path, _User())
    )
    return _access(cluster_found, user_found, chosen.entry)


def _read(path: Path, must_exist: bool) -> _File:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if must_exist:
            raise CredentialsError(str(path), "", "no such file") from None
        return _File()
    except OSError as error:
        raise CredentialsError(str(path), "", f"cannot be read: {error.strerror}") from None
    try:
        document = next(yaml_documents(text.decode()), None)
    except (DocumentError, UnicodeDecodeError) as error:
        place = re.search(r"line \d+", str(error))
        # The error's own text may contain a part of the line, which may contain a token.
        raise CredentialsError(str(path), "", f"not YAML{f' at {place[0]}' if place else ''}") from None
    try:
        return msgspec.convert(document.tree if document is not None else {}, _File)
    except msgspec.ValidationError as error:
        place = re.match(_PLACE, str(error))
        if place is None:
            raise CredentialsError(str(path), "", str(error)) from None
        raise CredentialsError(str(path), place["field"], place["problem"]) from None


def _look_up(found: dict[str, _Found[T]], name: str, source: str, where: str, kind: str) -> _Found[T]:
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise CredentialsError(source, where, f"there is no {kind} {name!r}; there are: {known}")
    return found[name]


def _access(cluster_found: _Found[_Cluster], user_found: _Found[_User], context: _Context) -> Access:
    cluster, user = cluster_found.entry, user_found.entry
    cluster_path, user_path = cluster_found.path, user_found.path
    where = f"clusters[{context.cluster}].cluster"
    if not cluster.server:
        raise CredentialsError(str(cluster_path), f"{where}.server", "not set; write it as https://host:6443")
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        raise CredentialsError(
            str(cluster_path), f"{where}.insecure-skip-tls-verify", "contradicts certificate-authority; keep one"
        )
    tls = TlsSettings(
        source=str(cluster_path),
        ca_data=cluster.certificate_authority_data,
        ca_file=_beside(cluster_path, cluster.certificate_authority),
        certificate=_certificate(user, user_path, context.user),
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )
    identity = Identity(
        token=user.token,
        token_file=_beside(user_path, user.token_file),
        username=user.username,
        password=user.password,
        plugin=_plugin(user, user_path, context.user, cluster, tls),
        oidc=_oidc(user, user_path, context.user),
        impersonation=_impersonation(user, user_path, context.user),
    )
    return Access(
        source=str(user_path),
        server=cluster.server,
        server_field=f"{where}.server",
        tls=tls,
        identity=identity,
        proxy_url=cluster.proxy_url,
        namespace=context.namespace,
        scheduler=_scheduler(cluster),
    )


def _scheduler(cluster: _Cluster) -> str:
    found = (one.extension for one in cluster.extensions or () if one.name == SCHEDULER_EXTENSION)
    return next((str(content["server"]) for content in found if isinstance(content, dict) and "server" in content), "")


def _beside(path: Path, named: str) -> str:
    return str(path.parent / named) if named else ""


def _certificate(user: _User, path: Path, name: str) -> Certificate | None:
    has_cert = bool(user.client_certificate or user.client_certificate_data)
    has_key = bool(user.client_key or user.client_key_data)
    if has_cert != has_key:
        missing = "client-key" if has_cert else "client-certificate"
        raise CredentialsError(str(path), f"users[{name}].user.{missing}", "not set, but its counterpart is")
    if not has_cert:
        return None
    return Certificate(
        cert_data=user.client_certificate_data,
        key_data=user.client_key_data,
        cert_file=_beside(path, user.client_certificate),
        key_file=_beside(path, user.client_key),
    )


def _plugin(user: _User, path: Path, name: str, cluster: _Cluster, tls: TlsSettings) -> "ExecPlugin | None":
    plugin = user.exec
    if plugin is None:
        return None
    # Imported on demand: rarely used.
    from kubestow.client.execplugin import ExecPlugin

    where = f"users[{name}].user.exec"
    if not plugin.command:
        raise CredentialsError(str(path), f"{where}.command", "not set")
    if plugin.api_version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
        raise CredentialsError(
            str(path), f"{where}.apiVersion", f"{plugin.api_version!r}; use client.authentication.k8s.io/v1"
        )
    modes = ("Never", "IfAvailable", "Always")
    if plugin.interactive_mode not in modes and (
        plugin.interactive_mode or plugin.api_version == "client.authentication.k8s.io/v1"
    ):
        raise CredentialsError(
            str(path), f"{where}.interactiveMode", f"{plugin.interactive_mode!r}; use one of {', '.join(modes)}"
        )
    described = None
    if plugin.provide_cluster_info:
        config = next((e.extension for e in cluster.extensions or () if e.name == _EXEC_EXTENSION), None)
        described = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": _ca_bytes(tls),
            "proxy-url": cluster.proxy_url,
            "config": config,
        }
    command = _beside(path, plugin.command) if os.sep in plugin.command else plugin.command
    return ExecPlugin(
        command=command,
        api_version=plugin.api_version,
        args=tuple(plugin.args or ()),
        env=tuple((variable.name, variable.value) for variable in plugin.env or ()),
        install_hint=plugin.install_hint,
        interactive_mode=plugin.interactive_mode or "IfAvailable",
        cluster={key: value for key, value in described.items() if value} if described else None,
        place=where,
    )


def _ca_bytes(tls: TlsSettings) -> bytes | None:
    if tls.ca_data or not tls.ca_file:
        return tls.ca_data
    return read_pem(tls.ca_file, tls.source, "certificate-authority")


def _oidc(user: _User, path: Path, name: str) -> "OidcSettings | None":
    provider = user.auth_provider
    if provider is None:
        return None
    # Imported on demand: rarely used.
    from kubestow.client.oidc import OidcSettings

    where = f"users[{name}].user.auth-provider"
    if provider.name != "oidc":
        raise CredentialsError(
            str(path), f"{where}.name", f"{provider.name!r} is not supported; use oidc, or an exec plugin"
        )
    config = provider.config or {}
    for key in ("idp-issuer-url", "client-id"):
        if not config.get(key):
            raise CredentialsError(str(path), f"{where}.config.{key}", "not set")
    return OidcSettings(kubeconfig=str(path), user=name, place=where, config=tuple(sorted(config.items())))


def _impersonation(user: _User, path: Path, name: str) -> tuple[tuple[str, str], ...]:
    if not user.act_as:
        if user.act_as_uid or user.act_as_groups or user.act_as_extra:
            raise CredentialsError(str(path), f"users[{name}].user.as", "not set, but other as-* fields are")
        return ()
    headers = [("Impersonate-User", user.act_as)]
    if user.act_as_uid:
        headers.append(("Impersonate-Uid", user.act_as_uid))
    headers += [("Impersonate-Group", group) for group in user.act_as_groups or ()]
    headers += [
        (f"Impersonate-Extra-{key}", value)
        for key, values in sorted((user.act_as_extra or {}).items())
        for value in values
    ]
    return tuple(headers)
