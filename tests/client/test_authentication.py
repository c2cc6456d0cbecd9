"""Credentials: tokens from files, plugins and identity providers, and their renewal after the server rejects them."""

import asyncio
import base64
import json
import logging
import stat
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.api.failures import UnauthorizedError
from kubestow.client.access import Access, Identity, open_channel
from kubestow.client.errors import CredentialsError
from kubestow.client.execplugin import ExecPlugin
from kubestow.client.informer import Informer
from kubestow.client.oidc import OidcSettings
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.resources import PODS
from kubestow.client.tls import TlsSettings
from support.client.authority import Authority
from support.client.doubles import FixedClock, Noted, middle, pod
from support.client.scripted import Answer, Request, Script, client_of, opened, serving
from support.client.virtualtime import run


def guarded(*accepted: str) -> Script:
    """Return a script that answers only requests with one of these tokens."""

    async def script(request: Request, answer: Answer) -> None:
        if request.headers.get("authorization") in {f"Bearer {token}" for token in accepted}:
            answer.reply(200, {"ok": 1})
        else:
            answer.error(401, "Unauthorized", "Unauthorized")

    return script


def tokens_seen(requests: list[Request]) -> list[str]:
    return [request.headers.get("authorization", "").removeprefix("Bearer ") for request in requests]


def access_with(port: int, **identity: Any) -> Access:
    return Access("kubeconfig", f"http://127.0.0.1:{port}", identity=Identity(**identity))


def test_static_credentials() -> None:
    """A token or a password is sent with every request, and so are the impersonation headers."""

    async def main() -> None:
        async with serving(guarded("t")) as server:
            identity = {"token": "t", "impersonation": (("Impersonate-User", "root"),)}
            with opened(server, access_with(server.port, **identity)) as channel:
                await client_of(channel).request("GET", "/a")
            assert server.requests[0].headers["impersonate-user"] == "root"
            basic = access_with(server.port, username="me", password="p")
            with opened(server, basic) as channel, pytest.raises(UnauthorizedError):
                await client_of(channel).request("GET", "/a")
            expected = base64.b64encode(b"me:p").decode()
            assert server.requests[1].headers["authorization"] == f"Basic {expected}"
            assert len(server.requests) == 2

    run(main())


def test_token_file_is_read_again(tmp_path: Path) -> None:
    """A rotated token is used within a minute."""
    path = tmp_path / "token"
    path.write_text("first\n")

    async def main() -> None:
        async with serving(guarded("first", "second")) as server:
            with opened(server, access_with(server.port, token_file=str(path))) as channel:
                client = client_of(channel)
                await client.request("GET", "/a")
                path.write_text("second\n")
                await client.request("GET", "/b")
                await asyncio.sleep(61)
                await client.request("GET", "/c")
            assert tokens_seen(server.requests) == ["first", "first", "second"]

    run(main())


def test_expired_token_is_read_again_at_once(tmp_path: Path) -> None:
    """After a 401 the client reads the file early and sends the request again."""
    path = tmp_path / "token"
    path.write_text("old")

    async def main() -> None:
        accepted = {"old"}

        async def script(request: Request, answer: Answer) -> None:
            await guarded(*accepted)(request, answer)

        async with serving(script) as server:
            with opened(server, access_with(server.port, token_file=str(path))) as channel:
                client = client_of(channel)
                await client.request("GET", "/a")
                accepted.clear()
                accepted.add("new")
                path.write_text("new")
                assert (await client.request("POST", "/b", b"{}")).status == 200
            assert tokens_seen(server.requests) == ["old", "old", "new"]

    run(main())


def test_watch_with_an_expired_token(tmp_path: Path) -> None:
    """A watch rejected with 401 is opened again with the renewed token."""
    path = tmp_path / "token"
    path.write_text("old")

    async def script(request: Request, answer: Answer) -> None:
        if request.headers["authorization"] != "Bearer new":
            path.write_text("new")
            answer.error(401, "Unauthorized")
        else:
            answer.begin_stream()
            answer.event("ADDED", pod("a", 1))
            answer.bookmark("2", ends_initial=True)

    async def main() -> None:
        async with serving(script) as server:
            with opened(server, access_with(server.port, token_file=str(path))) as channel:
                noted = Noted()
                informer = Informer(PODS, noted)
                task = asyncio.create_task(Reflector(client_of(channel), informer, middle, Refusals()).run())
                await informer.synced.wait()
                task.cancel()
                await asyncio.wait({task})
            assert noted.seen == ["+a@1", "synced"]
            assert len(server.requests) == 2

    run(main())


def test_unreadable_token_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the start it is an error that names the file; later the previous token is kept."""
    path = tmp_path / "token"

    async def main() -> None:
        async with serving(guarded("t")) as server:
            with opened(server, access_with(server.port, token_file=str(path))) as channel:
                client = client_of(channel)
                with pytest.raises(CredentialsError, match=f"tokenFile: cannot read {path}"):
                    await client.request("GET", "/a")
                path.write_text("t")
                await client.request("GET", "/a")
                path.unlink()
                await asyncio.sleep(61)
                await client.request("GET", "/a")

    with caplog.at_level(logging.WARNING):
        run(main())
    assert "Keeping the previous token" in caplog.text


def test_more_than_one_kind_of_credentials() -> None:
    """Conflicting credentials are rejected before any request."""

    async def main() -> None:
        with pytest.raises(CredentialsError, match="token, username"):
            open_channel(access_with(1, token="t", username="u"), environ={}, clock=FixedClock())

    run(main())


def plugin_script(folder: Path, body: str) -> ExecPlugin:
    """Return a plugin that counts its runs in a file, then runs `body`."""
    path = folder / "plugin"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"with open({str(folder / 'runs')!r}, 'a') as file:\n    file.write('x')\n    runs = file.tell()\n"
        "def answer(**status):\n"
        "    print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': status}))\n" + textwrap.dedent(body)
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(
        str(path),
        "client.authentication.k8s.io/v1",
        args=("arg",),
        env=(("EXTRA", "value"),),
        interactive_mode="Never",
        cluster={"server": "https://x"},
        place="users[u].user.exec",
    )


def test_plugin_returns_a_token_until_it_expires(tmp_path: Path) -> None:
    """The plugin runs once for many requests, again when its token has expired, and again after a 401."""
    plugin = plugin_script(
        tmp_path,
        """
        info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
        assert info["spec"] == {"interactive": False, "cluster": {"server": "https://x"}}
        assert (sys.argv[1:], os.environ["EXTRA"]) == (["arg"], "value")
        answer(token=f"token{runs}", expirationTimestamp="2027-01-15T08:00:00Z")
        """,
    )
    clock = FixedClock(1_800_000_000 - 60)

    async def main() -> None:
        async with serving(guarded("token1", "token2", "token4")) as server:
            access = access_with(server.port, plugin=plugin)
            channel = open_channel(access, environ={"PATH": "/usr/bin:/bin"}, clock=clock)
            client = client_of(channel)
            await asyncio.gather(*(client.request("GET", f"/{n}") for n in range(5)))
            assert set(tokens_seen(server.requests)) == {"token1"}
            clock.seconds += 120
            await client.request("GET", "/later")
            assert tokens_seen(server.requests)[-1] == "token2"
            await client.request("GET", "/refused")
            assert tokens_seen(server.requests)[-2:] == ["token3", "token4"]
            channel.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(3)", "failed with exit code 3"),
        ("print('SECRET')", "printed something that is not an ExecCredential"),
        ('print(\'{"kind": "Other", "status": {"token": "SECRET"}}\')', "another kind or version"),
        ("answer()", "neither a token nor a client certificate"),
        ("answer(clientCertificateData='SECRET')", "a certificate without its key"),
    ],
)
def test_failing_plugin_is_named_and_its_output_kept_secret(tmp_path: Path, body: str, message: str) -> None:
    """The error names the field of the kubeconfig and never contains the output of the plugin."""
    plugin = plugin_script(tmp_path, body)

    async def main() -> None:
        channel = open_channel(access_with(1, plugin=plugin), environ={"PATH": "/bin"}, clock=FixedClock())
        with pytest.raises(CredentialsError, match=message) as caught:
            await client_of(channel).request("GET", "/a")
        assert "users[u].user.exec" in str(caught.value)
        assert "SECRET" not in str(caught.value)

    asyncio.run(main())


def test_missing_plugin_is_reported_with_its_hint() -> None:
    """The error for a missing command contains the install hint of the kubeconfig."""
    plugin = ExecPlugin("no-such-login", "client.authentication.k8s.io/v1", install_hint="apt install it")

    async def main() -> None:
        channel = open_channel(access_with(1, plugin=plugin), environ={}, clock=FixedClock())
        with pytest.raises(CredentialsError, match="apt install it"):
            await client_of(channel).request("GET", "/a")

    run(main())


def test_plugin_returns_a_certificate(tmp_path: Path) -> None:
    """The client presents the certificate of a plugin to the server."""
    authority = Authority()
    cert, key = authority.issue("me")
    plugin = plugin_script(tmp_path, f"answer(clientCertificateData={cert.decode()!r}, clientKeyData={key.decode()!r})")
    context = authority.server_context(tmp_path, "127.0.0.1", ask_clients=True)

    async def accept(request: Request, answer: Answer) -> None:
        answer.reply(200)

    async def main() -> None:
        async with serving(accept, context) as server:
            tls = TlsSettings(ca_data=authority.pem)
            access = Access("kc", f"https://127.0.0.1:{server.port}", tls=tls, identity=Identity(plugin=plugin))
            channel = open_channel(access, environ={"PATH": "/bin"}, clock=FixedClock())
            assert (await client_of(channel).request("GET", "/a")).status == 200
            channel.close()

    asyncio.run(main())


def jwt(expires: float) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


def oidc_settings(folder: Path, port: int, id_token: str) -> OidcSettings:
    config = {
        "idp-issuer-url": f"http://127.0.0.1:{port}/realm",
        "client-id": "me",
        "client-secret": "s",
        "id-token": id_token,
        "refresh-token": "refresh1",
    }
    user = {"name": "u", "user": {"auth-provider": {"name": "oidc", "config": config}}}
    path = folder / "config"
    path.write_text(yaml.safe_dump({"kind": "Config", "users": [user], "extra": {"kept": True}}))
    path.chmod(0o600)
    return OidcSettings(str(path), "u", "users[u].user.auth-provider", tuple(config.items()))


def test_identity_provider_refreshes_the_token(tmp_path: Path) -> None:
    """A valid id token is used; an expired one is refreshed, and both new tokens are saved in the kubeconfig."""
    clock = FixedClock()
    first, second = jwt(clock.now() + 60), jwt(clock.now() + 3600)

    async def provider(request: Request, answer: Answer) -> None:
        if request.path == "/realm/.well-known/openid-configuration":
            answer.reply(200, {"token_endpoint": f"http://{request.headers['host']}/token"})
        else:
            assert request.path == "/token"
            assert request.body == b"grant_type=refresh_token&refresh_token=refresh1"
            assert request.headers["authorization"] == "Basic " + base64.b64encode(b"me:s").decode()
            answer.reply(200, {"id_token": second, "refresh_token": "refresh2"})

    async def main() -> None:
        async with serving(provider) as idp, serving(guarded(first, second)) as server:
            settings = oidc_settings(tmp_path, idp.port, first)
            channel = open_channel(access_with(server.port, oidc=settings), environ={}, clock=clock)
            client = client_of(channel)
            await client.request("GET", "/a")
            clock.seconds += 100
            await client.request("GET", "/b")
            assert tokens_seen(server.requests) == [first, second]
            channel.close()

    run(main())
    saved = yaml.safe_load((tmp_path / "config").read_text())
    config = saved["users"][0]["user"]["auth-provider"]["config"]
    assert (config["id-token"], config["refresh-token"], config["client-id"]) == (second, "refresh2", "me")
    assert saved["extra"] == {"kept": True}
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"/realm/.well-known/openid-configuration": (404, {})}, "the provider answered 404"),
        ({"/realm/.well-known/openid-configuration": (200, {})}, "names no token endpoint"),
        ({"/realm/.well-known/openid-configuration": (200, b"<html>")}, "does not conform to OpenID Connect"),
        ({"/token": (400, {"error": "invalid_grant"})}, "answered 400 to POST"),
        ({"/token": (200, {"access_token": "SECRET"})}, "without an id token"),
    ],
)
def test_provider_that_fails(tmp_path: Path, answers: dict[str, tuple[int, Any]], message: str) -> None:
    """The error names the provider's entry in the kubeconfig and contains no token."""

    async def provider(request: Request, answer: Answer) -> None:
        good = {"token_endpoint": f"http://{request.headers['host']}/token"}
        answer.reply(*answers.get(request.path, (200, good)))

    async def main() -> None:
        async with serving(provider) as idp:
            settings = oidc_settings(tmp_path, idp.port, "expired")
            channel = open_channel(access_with(1, oidc=settings), environ={}, clock=FixedClock())
            with pytest.raises(CredentialsError, match=message) as caught:
                await client_of(channel).request("GET", "/a")
            assert "auth-provider.config.idp-issuer-url" in str(caught.value)
            assert "SECRET" not in str(caught.value)
            assert "refresh1" not in str(caught.value)

    run(main())
