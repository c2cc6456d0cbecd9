"""The kubeconfig that a control plane writes, and the files that it does not overwrite."""

import asyncio
import socket
from pathlib import Path

import pytest

from kubestow.apiserver import ControlPlane, Options, StartError
from kubestow.client.kubeconfig import load_kubeconfig

NAMESAKE = "{clusters: [{name: kubestow, cluster: %s}], contexts: [{name: kubestow}], users: [{name: admin}]}"
FOREIGN = {
    "of kubectl": "clusters: [{name: production, cluster: {server: https://example.com}}]\ncontexts: []\nusers: []\n",
    "a list": "- kubestow\n",
    "no YAML": "clusters: [\n",
    "no text": "\xff\x00",
    "a namesake": NAMESAKE % "{server: https://example.com}",
    "without a certificate": NAMESAKE % "{server: https://example.com, certificate-authority-data: 0}",
}


def plane(path: Path, folder: Path | None = None) -> ControlPlane:
    return ControlPlane(Options(kubeconfig=path, data_dir=folder, controllers=False))


async def start_and_stop(path: Path, folder: Path | None = None) -> str:
    """Return the address of the control plane."""
    async with plane(path, folder) as started:
        return started.url


def test_the_kubeconfig_of_a_running_cluster_is_not_overwritten(tmp_path: Path) -> None:
    """The first cluster stays reachable; the message names the file, the cluster and what to do."""
    path = tmp_path / "kubeconfig"

    async def run() -> None:
        async with plane(path) as first:
            written = path.read_bytes()
            with pytest.raises(StartError) as refused:
                await start_and_stop(path)
            assert path.read_bytes() == written
            assert str(refused.value) == (
                f"{path} is the kubeconfig of the cluster that runs at {first.url}; "
                "stop it, or name another file with --kubeconfig and another port with --port"
            )

    asyncio.run(run())


def test_the_kubeconfig_of_a_stopped_cluster_is_overwritten(tmp_path: Path) -> None:
    """The file leads to the new one."""
    path = tmp_path / "kubeconfig"
    asyncio.run(start_and_stop(path))
    url = asyncio.run(start_and_stop(path))
    assert load_kubeconfig([str(path)]).server == url


def test_the_kubeconfig_is_overwritten_when_its_port_belongs_to_another_cluster(tmp_path: Path) -> None:
    """A server whose certificate the file does not trust is not the one that it was written for."""
    path = tmp_path / "kubeconfig"

    async def run() -> None:
        old = await start_and_stop(path)
        async with plane(tmp_path / "other") as other:
            path.write_text(path.read_text().replace(old, other.url))
            assert await start_and_stop(path) != other.url

    asyncio.run(run())


def test_a_cluster_overwrites_its_own_kubeconfig_after_a_restart(tmp_path: Path) -> None:
    """Whatever answers at the old address."""
    path, folder = tmp_path / "kubeconfig", tmp_path / "data"

    async def run() -> None:
        old = await start_and_stop(path, folder)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            path.write_text(path.read_text().replace(old, f"https://127.0.0.1:{port}"))
            assert load_kubeconfig([str(path)]).server != await start_and_stop(path, folder)

    asyncio.run(run())


def test_a_silent_server_may_be_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that is stopped in a debugger accepts connections and does not answer."""
    path = tmp_path / "kubeconfig"
    monkeypatch.setattr("kubestow.apiserver.auth.kubeconfig._ANSWER_SECONDS", 0.05)

    async def run() -> None:
        old = await start_and_stop(path)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            path.write_text(path.read_text().replace(old, f"https://127.0.0.1:{port}"))
            with pytest.raises(StartError, match="is the kubeconfig of the cluster that runs at"):
                await start_and_stop(path)

    asyncio.run(run())


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_others_is_not_overwritten(content: str, tmp_path: Path) -> None:
    """Such as the kubeconfig of a real cluster."""
    path = tmp_path / "config"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(StartError) as refused:
        asyncio.run(start_and_stop(path))
    assert path.read_text(encoding="latin-1") == content
    advice = "name another file with --kubeconfig, or remove this one"
    assert str(refused.value) == f"{path} was not written by Kubestow and is not overwritten; {advice}"


def test_an_empty_file_is_overwritten(tmp_path: Path) -> None:
    """As mktemp creates it."""
    path = tmp_path / "config"
    path.touch()
    url = asyncio.run(start_and_stop(path))
    assert load_kubeconfig([str(path)]).server == url
