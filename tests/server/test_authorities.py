"""Whose certificates are trusted: files that flags name come first, then what the cluster has written down."""

from pathlib import Path

import pytest

from client.authority import Authority
from client.scripted import Answer, Request, client_of, opened, serving
from client.virtualtime import run
from kubestow.model.failures import ForbiddenError
from kubestow.server.authentication import FrontProxies
from kubestow.server.authorities import Authorities, find_authorities
from kubestow.server.options import ServingOptions
from kubestow.server.tls import TlsError

CLIENTS, PROXIES, OTHERS = (Authority(name).pem.decode() for name in ("clients", "proxies", "others"))
IN_THE_CLUSTER = {
    "client-ca-file": CLIENTS,
    "requestheader-client-ca-file": PROXIES,
    "requestheader-allowed-names": '["front"]',
    "requestheader-username-headers": '["X-User"]',
}


def find(options: ServingOptions, *, forbidden: bool = False) -> Authorities:
    async def script(_: Request, answer: Answer) -> None:
        if forbidden:
            answer.error(403, "Forbidden", "no")
        else:
            answer.reply(200, {"data": IN_THE_CLUSTER})

    async def main() -> Authorities:
        async with serving(script) as server:
            with opened(server) as channel:
                return await find_authorities(options, client_of(channel))

    return run(main())


def test_the_cluster_is_asked() -> None:
    """Its word about headers and names replaces that of the flags."""
    found = find(ServingOptions())
    assert found.pem.decode() == f"{CLIENTS}\n{PROXIES}"
    assert len(found.of_clients()) == 1
    proxies = found.front_proxies(FrontProxies((), frozenset(("given",)), group_headers=("x-given",)))
    assert proxies is not None
    assert (proxies.allowed_names, proxies.user_headers) == (frozenset(("front",)), ("X-User",))
    assert proxies.group_headers == ("x-given",)


def test_files_come_first(tmp_path: Path) -> None:
    """And where the proxies' authorities are a file, the flags say the rest about proxies."""
    file = tmp_path / "ca.pem"
    file.write_text(OTHERS)
    found = find(ServingOptions(proxy_ca_file=str(file)))
    assert (found.clients, found.proxies) == (CLIENTS, OTHERS)
    proxies = found.front_proxies(FrontProxies((), frozenset(("given",))))
    assert proxies is not None
    assert proxies.allowed_names == frozenset(("given",))


def test_a_failed_lookup_is_tolerated_unless_the_flags_say_otherwise() -> None:
    """Without authorities nobody's certificate counts."""
    found = find(ServingOptions(), forbidden=True)
    assert (found.pem, found.of_clients(), found.front_proxies(FrontProxies(()))) == (b"", (), None)
    with pytest.raises(ForbiddenError):
        find(ServingOptions(tolerates_lookup_failure=False), forbidden=True)


def test_a_lookup_can_be_skipped() -> None:
    """Then only files count."""
    assert find(ServingOptions(skips_lookup=True)) == Authorities()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    """With its flag."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(TlsError, match="--client-ca-file"):
        find(ServingOptions(client_ca_file=str(file))).of_clients()
