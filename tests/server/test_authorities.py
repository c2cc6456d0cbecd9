"""The trusted authorities: the files of the flags come first, then the ConfigMap of the cluster."""

import asyncio
from pathlib import Path

import pytest

from kubestow.api.failures import ForbiddenError
from kubestow.server.authentication import FrontProxies
from kubestow.server.authorities import Authorities, Trust, find_authorities
from kubestow.server.options import ServingOptions
from kubestow.server.tls import TlsError
from support.client.authority import Authority
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run
from support.server.serving import Reviews, Setting, served

CLIENTS, PROXIES, OTHERS = (Authority(name).pem.decode() for name in ("clients", "proxies", "others"))
IN_THE_CLUSTER = {
    "client-ca-file": CLIENTS,
    "requestheader-client-ca-file": PROXIES,
    "requestheader-allowed-names": '["front"]',
    "requestheader-username-headers": '["X-User"]',
}


def find(options: ServingOptions, *, refused: int = 0, known: Authorities | None = None) -> Authorities:
    async def script(_: Request, answer: Answer) -> None:
        if refused:
            answer.error(refused, "Forbidden" if refused == 403 else "NotFound", "no")
        else:
            answer.reply(200, {"data": IN_THE_CLUSTER})

    async def main() -> Authorities:
        async with serving(script) as server:
            with opened(server) as channel:
                return await find_authorities(options, client_of(channel), known)

    return run(main())


def test_the_authorities_of_the_cluster() -> None:
    """The cluster's settings of headers and names replace those of the flags."""
    found = find(ServingOptions())
    assert found.pem.decode() == f"{CLIENTS}\n{PROXIES}"
    assert len(found.of_clients()) == 1
    proxies = found.front_proxies(FrontProxies((), frozenset(("given",)), group_headers=("x-given",)))
    assert proxies is not None
    assert (proxies.allowed_names, proxies.user_headers) == (frozenset(("front",)), ("X-User",))
    assert proxies.group_headers == ("x-given",)


def test_files_come_first(tmp_path: Path) -> None:
    """If the proxies' authorities are in a file, the other settings of proxies are those of the flags."""
    file = tmp_path / "ca.pem"
    file.write_text(OTHERS)
    found = find(ServingOptions(proxy_ca_file=str(file)))
    assert (found.clients, found.proxies) == (CLIENTS, OTHERS)
    proxies = found.front_proxies(FrontProxies((), frozenset(("given",))))
    assert proxies is not None
    assert proxies.allowed_names == frozenset(("given",))


def test_a_failed_lookup_is_tolerated_unless_the_flags_exclude_it() -> None:
    """Without authorities no certificate is accepted."""
    found = find(ServingOptions(), refused=403)
    assert (found.pem, found.of_clients(), found.front_proxies(FrontProxies(()))) == (b"", (), None)
    with pytest.raises(ForbiddenError):
        find(ServingOptions(tolerates_lookup_failure=False), refused=403)


def test_a_missing_config_map_is_not_an_error() -> None:
    """A cluster without front proxies and client certificates has no ConfigMap."""
    assert find(ServingOptions(tolerates_lookup_failure=False), refused=404) == Authorities()


@pytest.mark.parametrize("tolerates", [True, False])
def test_a_later_failed_lookup_changes_nothing(tolerates: bool, tmp_path: Path) -> None:
    """The cluster's previous authorities are kept; files are still read."""
    file = tmp_path / "ca.pem"
    file.write_text(OTHERS)
    known = Authorities(CLIENTS, PROXIES, {"requestheader-allowed-names": '["front"]'})
    options = ServingOptions(tolerates_lookup_failure=tolerates)
    assert find(options, refused=403, known=known) == known
    assert find(options, known=Authorities()).clients == CLIENTS
    options = ServingOptions(tolerates_lookup_failure=tolerates, client_ca_file=str(file))
    assert find(options, refused=404, known=known) == Authorities(OTHERS, PROXIES, known.settings)
    options = ServingOptions(tolerates_lookup_failure=tolerates, proxy_ca_file=str(file))
    assert find(options, refused=404, known=known) == Authorities(CLIENTS, OTHERS)


def test_a_lookup_can_be_skipped() -> None:
    """Then only the files are used."""
    assert find(ServingOptions(skips_lookup=True)) == Authorities()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_invalid_file_is_named(tmp_path: Path, content: str | None) -> None:
    """The error names the flag."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(TlsError, match="--client-ca-file"):
        find(ServingOptions(client_ca_file=str(file))).of_clients()


def test_authorities_are_looked_up_again(tmp_path: Path) -> None:
    """Certificates of a new authority are accepted without a restart, those of a removed one are not."""
    old, new = Authority("old"), Authority("new")
    first, second, proxy = tmp_path / "first.pem", tmp_path / "second.pem", tmp_path / "proxy.pem"
    first.write_bytes(b"".join(old.issue("monitor")))
    second.write_bytes(b"".join(new.issue("monitor")))
    proxy.write_bytes(b"".join(new.issue("front")))
    clients, proxies = tmp_path / "clients.pem", tmp_path / "proxies.pem"
    clients.write_bytes(b"")
    proxies.write_bytes(b"")
    options = ServingOptions(client_ca_file=str(clients), proxy_ca_file=str(proxies))
    reviews = Reviews(allowed={("monitor", "get", "/metrics"), ("alice", "get", "/metrics")})

    async def main() -> None:
        async with served(Setting(reviews)) as reader:
            trust = Trust(options, None, Authorities())

            async def read_by(shown: Path, **headers: str) -> int:
                await trust.refresh(reader.server.contexts, reader.server.authenticator)
                return (await reader.get("/metrics", shown=shown, headers=headers)).status

            assert await read_by(first) == 403
            clients.write_bytes(old.pem)
            assert await read_by(first) == 200
            clients.write_bytes(new.pem)
            assert await read_by(first) == 403
            assert await read_by(second) == 200
            clients.write_bytes(b"nonsense")
            assert await read_by(second) == 200
            assert await read_by(proxy, **{"X-Remote-User": "alice"}) == 403
            clients.write_bytes(b"")
            proxies.write_bytes(new.pem)
            assert await read_by(proxy, **{"X-Remote-User": "alice"}) == 200
            assert await read_by(second) == 403

    asyncio.run(main())


def test_they_are_looked_up_while_the_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every minute; the test uses a shorter interval."""
    monkeypatch.setattr("kubestow.server.serving._REFRESH_SECONDS", 0.01)

    async def main() -> None:
        looked = asyncio.Event()

        class Watched(Trust):
            async def refresh(self, *_: object) -> None:
                looked.set()

        async with served(Setting()) as reader:
            reader.server.trust = Watched(ServingOptions(), None, Authorities())
            await asyncio.wait_for(looked.wait(), 300)

    asyncio.run(main())
