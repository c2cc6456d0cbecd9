"""The serving certificate: configured, found or created; reloaded when it changes."""

import asyncio
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from kubestow.server.certificates import names_in
from kubestow.server.tls import ServerContexts, ServerTls, TlsError, _openssl_name
from support.client.authority import Authority
from support.server.serving import Reader, Setting, served

HOSTS = ["localhost", "127.0.0.1"]


async def _shown(reader: Reader, name: str = "localhost") -> x509.Certificate:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", reader.server.port, ssl=context, server_hostname=name)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(der)


def _issue(authority: Authority, folder: Path, name: str, *hosts: str) -> tuple[str, str]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    for path, content in zip((certificate, key), authority.issue(name, *hosts), strict=True):
        path.write_bytes(content)
    return str(certificate), str(key)


def _write(paths: tuple[str, ...], contents: tuple[bytes, ...]) -> None:
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_bytes(content)
        os.utime(path, (1, len(content)))


def test_created_in_a_folder_and_found_there_again(tmp_path: Path) -> None:
    """The key is readable only by its owner; the next start uses the same certificate."""
    folder = tmp_path / "certs"

    async def main() -> x509.Certificate:
        async with served(Setting(tls=ServerTls(cert_dir=str(folder)))) as reader:
            return await _shown(reader)

    first, second = asyncio.run(main()), asyncio.run(main())
    assert first == second
    assert (folder / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
    assert names_in((folder / "kube-scheduler.crt").read_bytes()) == ("localhost", "127.0.0.1")


def test_created_in_memory() -> None:
    """Without a folder every start creates a new certificate."""

    async def main() -> x509.Certificate:
        async with served(Setting()) as reader:
            return await _shown(reader)

    assert asyncio.run(main()) != asyncio.run(main())


def test_a_rotated_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    """After a bad file the previous certificate is kept."""
    authority = Authority()
    certificate, key = _issue(authority, tmp_path, "first")

    async def main() -> None:
        async with served(Setting(tls=ServerTls(certificate, key))) as reader:
            before = await _shown(reader)
            _write((certificate, key), authority.issue("second"))
            reader.server.contexts.refresh()
            after = await _shown(reader)
            assert before != after
            _write((certificate,), (b"nonsense",))
            reader.server.contexts.refresh()
            assert await _shown(reader) == after

    asyncio.run(main())


def test_another_certificate_for_another_name(tmp_path: Path) -> None:
    """The certificate is selected by the given domains, also wildcards, else by the names in the certificate."""
    authority = Authority()
    given = _issue(authority, tmp_path, "given")
    named = _issue(authority, tmp_path, "named", "by.its.own")
    sni = ((*given, ("one.example", "*.wild.example")), (*named, ()))

    async def main() -> None:
        async with served(Setting(tls=ServerTls(sni=sni))) as reader:
            names = {}
            for name in ("one.example", "a.wild.example", "by.its.own", "else.example"):
                subject = (await _shown(reader, name)).subject
                names[name] = str(subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
            assert names["one.example"] == names["a.wild.example"] == "given"
            assert names["by.its.own"] == "named"
            assert names["else.example"].startswith("localhost@")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ServerTls(cert_file="x"), "--tls-cert-file and --tls-private-key-file must be set together"),
        (ServerTls(cert_file="/no/cert", key_file="/no/key"), "--tls-cert-file: cannot use /no/cert"),
        (ServerTls(cert_dir="/proc/nowhere"), "--cert-dir: cannot use /proc/nowhere"),
        (ServerTls(min_version="TLS1"), "--tls-min-version: 'TLS1' is not one of VersionTLS10"),
        (ServerTls(cipher_suites=("TLS_NOPE",)), "--tls-cipher-suites: not supported by this OpenSSL: TLS_NOPE$"),
        (
            ServerTls(cipher_suites=("TLS_AES_NOPE", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_HIGH")),
            "--tls-cipher-suites: not supported by this OpenSSL: TLS_AES_NOPE, TLS_HIGH$",
        ),
        (ServerTls(curves=(29, 23)), r"--tls-curve-preferences: must be one of 23 \(prime256v1\), "),
        (ServerTls(curves=(4588,)), "--tls-curve-preferences: must be one of 23"),
    ],
)
def test_invalid_settings_name_the_flag(settings: ServerTls, words: str) -> None:
    """The error is raised before anything is served."""
    with pytest.raises(TlsError, match=words):
        ServerContexts(settings, HOSTS)


def test_the_minimum_version_and_the_ciphers() -> None:
    """The flags set them; the suites of TLS 1.3 are always enabled."""
    settings = ServerTls(
        min_version="VersionTLS13", cipher_suites=("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256")
    )
    context = ServerContexts(settings, HOSTS).context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    older = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-RSA-AES128-GCM-SHA256"]


def _client() -> ssl.SSLContext:
    """Return a context that accepts any certificate."""
    client = ssl.create_default_context()
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    return client


def _agree(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Return whether a handshake succeeds."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return True


def test_the_key_exchange() -> None:
    """Only the key exchange of the flag is accepted."""
    context = ServerContexts(ServerTls(curves=(24,)), HOSTS).context
    known, other = _client(), _client()
    known.set_ecdh_curve("secp384r1")
    other.set_ecdh_curve("prime256v1")
    assert _agree(context, known)
    assert not _agree(context, other)


@pytest.mark.parametrize(
    ("flag", "newest", "agrees"),
    [
        ("", ssl.TLSVersion.TLSv1_3, True),
        ("", ssl.TLSVersion.TLSv1_2, True),
        ("", ssl.TLSVersion.TLSv1_1, False),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2, True),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_1, False),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3, True),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_2, False),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1")
def test_older_clients_are_rejected_in_the_handshake(flag: str, newest: ssl.TLSVersion, agrees: bool) -> None:
    """The minimum version is that of the flag, by default TLS 1.2."""
    context = ServerContexts(ServerTls(min_version=flag), HOSTS).context
    client = _client()
    client.set_ciphers("ALL:@SECLEVEL=0")
    client.minimum_version, client.maximum_version = ssl.TLSVersion.TLSv1, newest
    assert _agree(context, client) is agrees


@pytest.mark.parametrize(
    ("cipher", "agrees"), [("ECDHE-ECDSA-AES128-GCM-SHA256", True), ("ECDHE-ECDSA-AES256-GCM-SHA384", False)]
)
def test_other_ciphers_are_rejected_in_the_handshake(cipher: str, agrees: bool) -> None:
    """Up to TLS 1.2 only the ciphers of the flag are accepted."""
    settings = ServerTls(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",))
    client = _client()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers(cipher)
    assert _agree(ServerContexts(settings, HOSTS).context, client) is agrees


@pytest.mark.parametrize(
    ("iana", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
    ],
)
def test_cipher_suites_by_their_two_names(iana: str, openssl: str) -> None:
    """kube-scheduler's flags use IANA's names, OpenSSL has its own."""
    assert _openssl_name(iana) == openssl
