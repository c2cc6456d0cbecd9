"""Loading of kubeconfigs: the resulting access, and the messages for errors."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.client.access import Access, Identity
from kubestow.client.errors import CredentialsError
from kubestow.client.incluster import in_cluster_access
from kubestow.client.kubeconfig import find_access, load_kubeconfig


def config(user: Any = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443", **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "work"}}],
    }


def written(path: Path, tree: Any) -> str:
    path.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree))
    return str(path)


def load(tmp_path: Path, user: Any = None, **cluster: Any) -> Access:
    return load_kubeconfig([written(tmp_path / "config", config(user, **cluster))])


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_all_fields_of_a_kubeconfig(tmp_path: Path) -> None:
    """Server, authority, certificate, token, names, proxy and impersonation."""
    user = {
        "client-certificate-data": encoded(b"CERT"),
        "client-key": "keys/me.key",
        "token": "t",
        "tokenFile": "tokens/mine",
        "as": "root",
        "as-uid": "0",
        "as-groups": ["wheel"],
        "as-user-extra": {"scopes": ["all", "none"]},
    }
    access = load(
        tmp_path,
        user,
        **{
            "certificate-authority-data": encoded(b"CA"),
            "tls-server-name": "kube",
            "proxy-url": "http://proxy:1",
        },
    )
    assert (access.server, access.proxy_url) == ("https://one:6443", "http://proxy:1")
    assert (access.tls.ca_data, access.tls.server_name) == (b"CA", "kube")
    certificate = access.tls.certificate
    assert certificate is not None
    assert (certificate.cert_data, certificate.key_file) == (b"CERT", str(tmp_path / "keys/me.key"))
    assert (access.identity.token, access.identity.token_file) == ("t", str(tmp_path / "tokens/mine"))
    assert access.identity.impersonation == (
        ("Impersonate-User", "root"),
        ("Impersonate-Uid", "0"),
        ("Impersonate-Group", "wheel"),
        ("Impersonate-Extra-scopes", "all"),
        ("Impersonate-Extra-scopes", "none"),
    )


def test_secrets_are_not_in_the_repr() -> None:
    """The repr of an access contains neither token nor password nor key."""
    access = Access("here", "https://x", identity=Identity(token="SECRET", password="SECRET"))
    assert "SECRET" not in repr(access)


def test_first_of_several_files_wins(tmp_path: Path) -> None:
    """Of several files each name is taken from the first that has it; missing files are skipped."""
    first = {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}]}
    second = config({"token": "second"})
    second["clusters"].append({"name": "other", "cluster": {"server": "https://other"}})
    paths = [written(tmp_path / "a", first), str(tmp_path / "missing"), written(tmp_path / "b", second), ""]
    environ = {"KUBECONFIG": os.pathsep.join(paths), "HOME": str(tmp_path)}
    access = find_access(environ=environ)
    assert (access.server, access.identity.token) == ("https://first", "second")


def test_all_of_several_files_are_missing(tmp_path: Path) -> None:
    """The error is about the files, not about a missing context."""
    environ = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")]), "HOME": str(tmp_path)}
    with pytest.raises(CredentialsError, match="/one: no such file"):
        find_access(environ=environ)


def test_another_context(tmp_path: Path) -> None:
    """The named context is used; without a user there are no credentials."""
    tree = config()
    tree["clusters"].append({"name": "d", "cluster": {"server": "https://two"}})
    tree["contexts"].append({"name": "second", "context": {"cluster": "d"}})
    tree["current-context"] = "second"
    access = load_kubeconfig([written(tmp_path / "config", tree)])
    assert (access.server, access.identity.token) == ("https://two", "")


def test_master_replaces_the_address_only(tmp_path: Path) -> None:
    """--master keeps the identity of the kubeconfig; alone it means no credentials."""
    path = written(tmp_path / "config", config({"token": "t"}))
    access = find_access(path, master="http://elsewhere:8080", environ={"HOME": str(tmp_path)})
    assert (access.server, access.identity.token) == ("http://elsewhere:8080", "t")
    alone = find_access(master="http://elsewhere:8080", environ={"HOME": str(tmp_path)})
    assert (alone.server, alone.identity.token) == ("http://elsewhere:8080", "")


def test_home_is_the_last_resort(tmp_path: Path) -> None:
    """Without flags, variables or a pod, ~/.kube/config is read; without that, the error lists the options."""
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(CredentialsError, match="--kubeconfig"):
        find_access(environ=environ)
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube" / "config", config())
    assert find_access(environ=environ).server == "https://one:6443"


def test_pod_with_a_service_account(tmp_path: Path) -> None:
    """In a pod, address, token and authority are those that Kubernetes provides."""
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(CredentialsError, match=r"token: no such file"):
        in_cluster_access(environ, str(tmp_path))
    for name, text in (("token", "t"), ("ca.crt", "ca")):
        (tmp_path / name).write_text(text)
    access = in_cluster_access(environ, str(tmp_path))
    assert access.server == "https://[fd00::1]:443"
    assert access.identity.token_file == str(tmp_path / "token")
    with pytest.raises(CredentialsError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster_access({}, str(tmp_path))


def test_exec_plugin(tmp_path: Path) -> None:
    """A plugin's command with a slash is relative to the kubeconfig; the plugin gets the cluster if it requests it."""
    exec_entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./login",
        "args": ["a"],
        "env": [{"name": "K", "value": "V"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    plugin = load(
        tmp_path,
        {"exec": exec_entry},
        **{"certificate-authority-data": encoded(b"CA"), "extensions": [extension]},
    ).identity.plugin
    assert plugin is not None
    assert (plugin.command, plugin.args, plugin.env) == (str(tmp_path / "login"), ("a",), (("K", "V"),))
    assert plugin.cluster == {
        "server": "https://one:6443",
        "certificate-authority-data": b"CA",
        "config": {"audience": "x"},
    }


V1 = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("{", "not YAML at line"),
        ("[]", "Expected `object`"),
        (config() | {"current-context": ""}, "current-context: not set"),
        (config() | {"current-context": "x"}, "there is no context 'x'; there are: main"),
        (config() | {"clusters": []}, r"contexts\[main\].context.cluster: there is no cluster 'c'; there are: none"),
        (config() | {"users": None}, r"contexts\[main\].context.user: there is no user 'u'"),
        (config(server=""), r"clusters\[c\].cluster.server: not set"),
        (config(server=17), r"clusters\[0\].cluster.server: Expected `str`"),
        (config(**{"certificate-authority-data": "%%"}), r"certificate-authority-data: Invalid base64"),
        (config(**{"insecure-skip-tls-verify": True, "certificate-authority": "x"}), "contradicts"),
        (config({"client-certificate": "x"}), r"users\[u\].user.client-key: not set"),
        (config({"client-key": "x"}), r"users\[u\].user.client-certificate: not set"),
        (config({"token": 5}), r"users\[0\].user.token"),
        (config({"as-groups": ["x"]}), r"users\[u\].user.as: not set"),
        (config({"exec": {"apiVersion": V1}}), r"exec.command: not set"),
        (config({"exec": {"command": "x", "apiVersion": "v2"}}), r"exec.apiVersion: 'v2'"),
        (config({"exec": {"command": "x", "apiVersion": V1}}), r"exec.interactiveMode: ''"),
        (config({"auth-provider": {"name": "gcp"}}), r"auth-provider.name: 'gcp' is not supported"),
        (config({"auth-provider": {"name": "oidc"}}), r"auth-provider.config.idp-issuer-url: not set"),
    ],
)
def test_errors_name_the_file_and_the_field(tmp_path: Path, tree: Any, message: str) -> None:
    """Every message begins with the file, names the field and describes the problem."""
    path = written(tmp_path / "config", tree)
    with pytest.raises(CredentialsError, match=message) as caught:
        load_kubeconfig([path])
    assert str(caught.value).startswith(path)


def test_explicit_file_must_exist(tmp_path: Path) -> None:
    """A file named by flag must exist."""
    with pytest.raises(CredentialsError, match="no such file"):
        find_access(str(tmp_path / "nothing"), environ={})


def test_broken_yaml_does_not_show_its_content(tmp_path: Path) -> None:
    """The error for a file that is not YAML does not contain its content."""
    path = written(tmp_path / "config", "users:\n- user: {token: SECRET\n- {")
    with pytest.raises(CredentialsError) as caught:
        load_kubeconfig([path])
    assert "SECRET" not in str(caught.value)


def test_a_user_without_an_entry_in_the_user_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOME and without an entry in the user database, as in a container, only the flags apply."""

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("HOME")
    assert find_access(master="http://elsewhere:8080", environ={}).server == "http://elsewhere:8080"
