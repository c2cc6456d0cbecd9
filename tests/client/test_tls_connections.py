"""Connections over TLS: trusted authorities, client certificates, and their rotation."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kubestow.api.failures import ConnectError
from kubestow.client.access import Access
from kubestow.client.errors import CredentialsError
from kubestow.client.tls import Certificate, TlsContexts, TlsSettings
from support.client.authority import Authority
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run


async def accept(request: Request, answer: Answer) -> None:
    answer.reply(200)


async def get(context: ssl.SSLContext, **tls: Any) -> int:
    async with serving(accept, context) as server:
        access = Access("test", f"https://127.0.0.1:{server.port}", tls=TlsSettings(source="test", **tls))
        with opened(server, access) as channel:
            client = client_of(channel)
            await client.request("GET", "/a")
            await client.request("GET", "/b")
        return server.connections


def test_trusted_server(tmp_path: Path) -> None:
    """Requests to a server signed by the kubeconfig's authority succeed, on one connection."""
    authority = Authority()
    assert run(get(authority.server_context(tmp_path, "127.0.0.1"), ca_data=authority.pem)) == 1


def test_unknown_authority(tmp_path: Path) -> None:
    """A server signed by another authority is rejected."""
    context = Authority().server_context(tmp_path, "127.0.0.1")
    with pytest.raises(ConnectError, match=r"^cannot connect to 127.0.0.1:\d+: certificate verify failed: [a-z -]+$"):
        run(get(context, ca_data=Authority().pem))


def test_wrong_name_and_server_name(tmp_path: Path) -> None:
    """The certificate must be for the host, or for tls-server-name if that is set."""
    authority = Authority()
    context = authority.server_context(tmp_path, "kube.example")
    with pytest.raises(ConnectError, match=r"(Hostname|IP address) mismatch"):
        run(get(context, ca_data=authority.pem))
    assert run(get(context, ca_data=authority.pem, server_name="kube.example")) == 1


def test_insecure_server_is_not_checked(tmp_path: Path) -> None:
    """With insecure-skip-tls-verify any certificate is accepted."""
    assert run(get(Authority().server_context(tmp_path, "elsewhere"), insecure=True)) == 1


@pytest.mark.parametrize("from_files", [True, False])
def test_client_certificate(tmp_path: Path, from_files: bool) -> None:
    """The client presents its certificate, from data or from files; without one, the server closes the connection."""
    authority = Authority()
    context = authority.server_context(tmp_path, "127.0.0.1", ask_clients=True)
    cert, key = authority.issue("me")
    if from_files:
        (tmp_path / "cert").write_bytes(cert)
        (tmp_path / "key").write_bytes(key)
        shown = Certificate(cert_file=str(tmp_path / "cert"), key_file=str(tmp_path / "key"))
    else:
        shown = Certificate(cert, key)
    assert run(get(context, ca_data=authority.pem, certificate=shown)) == 1


@pytest.mark.parametrize(("tickets", "resumed"), [(2, 3), (0, 0)])
@pytest.mark.parametrize("runner", [run, uvloop.run])
def test_handshakes_are_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: Callable[..., Any], tickets: int, resumed: int
) -> None:
    """Connections after the first resume its session, if the server sends tickets; it is copied once."""
    copies: list[ssl.SSLObject] = []
    session: Any = ssl.SSLObject.session

    def copied(connection: ssl.SSLObject) -> Any:
        copies.append(connection)
        return session.__get__(connection)

    monkeypatch.setattr(ssl.SSLObject, "session", property(copied, session.__set__))
    authority = Authority()
    context = authority.server_context(tmp_path, "127.0.0.1", ask_clients=True)
    context.num_tickets = tickets
    shown = Certificate(*authority.issue("me"))

    async def all_at_once() -> int:
        waiting: list[Answer] = []

        async def together(request: Request, answer: Answer) -> None:
            if request.path == "/first":
                answer.reply(200)
                return
            waiting.append(answer)
            for one in waiting if len(waiting) == 4 else ():
                one.reply(200)

        async with serving(together, context) as server:
            tls = TlsSettings(source="test", ca_data=authority.pem, certificate=shown)
            with opened(server, Access("test", f"https://127.0.0.1:{server.port}", tls=tls)) as channel:
                client = client_of(channel)
                await client.request("GET", "/first")
                await asyncio.gather(*(client.request("GET", f"/{number}") for number in range(4)))
            return server.connections

    assert runner(all_at_once()) == 4
    assert context.session_stats()["hits"] == resumed
    assert len(copies) == 1 or not tickets


def test_rotated_files_are_used(tmp_path: Path) -> None:
    """When the authority's file changes, the next connection uses it; until then the context is kept."""
    path = tmp_path / "ca"
    path.write_bytes(Authority().pem)
    contexts = TlsContexts(TlsSettings(ca_file=str(path)))
    first = contexts.current()
    assert contexts.current() is first
    replacement = tmp_path / "new"
    replacement.write_bytes(Authority().pem)
    replacement.rename(path)
    second = contexts.current()
    assert second is not first
    assert first.get_ca_certs() != second.get_ca_certs()


def test_an_unchanged_certificate_keeps_the_context(tmp_path: Path) -> None:
    """Only a changed certificate creates a new context."""
    authority = Authority()
    contexts = TlsContexts(TlsSettings(ca_data=authority.pem))
    shown = Certificate(*authority.issue("me"))
    assert contexts.set_certificate(shown)
    assert not contexts.set_certificate(shown)
    assert contexts.current() is contexts.current()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (TlsSettings("kc", ca_data=b"nonsense"), "kc: certificate-authority-data: not a PEM certificate"),
        (TlsSettings("kc", ca_file="/no/such"), "kc: certificate-authority: cannot read /no/such"),
        (
            TlsSettings("kc", certificate=Certificate(b"a", b"b")),
            "kc: client-certificate: the certificate and its key cannot be used",
        ),
        (
            TlsSettings("kc", certificate=Certificate(cert_file="/no/c", key_data=b"b")),
            "kc: client-certificate: cannot read /no/c",
        ),
        (
            TlsSettings("kc", certificate=Certificate(cert_data=b"a", key_file="/no/k")),
            "kc: client-key: cannot read /no/k",
        ),
    ],
)
def test_invalid_settings_are_named(settings: TlsSettings, message: str) -> None:
    """Errors name the kubeconfig, the field and the file."""
    with pytest.raises(CredentialsError, match=message):
        TlsContexts(settings).current()


def test_certificate_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file with the key, which OpenSSL requires, is deleted at once."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    TlsContexts(TlsSettings(certificate=Certificate(*Authority().issue("me")))).current()
    assert list(tmp_path.iterdir()) == []
