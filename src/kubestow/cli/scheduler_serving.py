"""What the flags about serving come to."""

from collections.abc import Callable

from kubestow.cli.scheduler_flags import FLAGS
from kubestow.cli.scheduler_settings import Flags, SettingsError
from kubestow.server.authentication import FrontProxies
from kubestow.server.options import ServingOptions
from kubestow.server.serving import Listening
from kubestow.server.tls import ServerTls


def listening_of(flags: Flags) -> Listening | None:
    """Where to serve; None if nowhere. Raises SettingsError."""
    port = flags["secure-port"]
    if not 0 <= port <= 65535:
        raise SettingsError(f"--secure-port: {port} is not a port; 0 serves nothing")
    if port == 0:
        if flags["ui"]:
            raise SettingsError("--ui: the page is served at the secure port; --secure-port must not be 0")
        return None
    return Listening(flags["bind-address"], port, flags["permit-port-sharing"])


def serving_of(flags: Flags, listening: Listening, set_verbosity: Callable[[int], None]) -> ServingOptions:
    """What to serve, and to whom."""
    return ServingOptions(
        listening=listening,
        tls=ServerTls(
            cert_file=flags["tls-cert-file"],
            key_file=flags["tls-private-key-file"],
            cert_dir=flags["cert-dir"],
            sni=flags["tls-sni-cert-key"],
            min_version=flags["tls-min-version"],
            cipher_suites=flags["tls-cipher-suites"],
            curves=flags["tls-curve-preferences"],
        ),
        authentication_kubeconfig=flags["authentication-kubeconfig"],
        authorization_kubeconfig=flags["authorization-kubeconfig"],
        skips_lookup=flags["authentication-skip-lookup"],
        tolerates_lookup_failure=flags["authentication-tolerate-lookup-failure"],
        client_ca_file=flags["client-ca-file"],
        proxy_ca_file=flags["requestheader-client-ca-file"],
        proxies=FrontProxies(
            (),
            frozenset(flags["requestheader-allowed-names"]),
            flags["requestheader-username-headers"],
            flags["requestheader-group-headers"],
            flags["requestheader-uid-headers"],
            flags["requestheader-extra-headers-prefix"],
        ),
        token_seconds=flags["authentication-token-webhook-cache-ttl"].seconds,
        allowed_seconds=flags["authorization-webhook-cache-authorized-ttl"].seconds,
        denied_seconds=flags["authorization-webhook-cache-unauthorized-ttl"].seconds,
        open_paths=flags["authorization-always-allow-paths"],
        flags=written(flags),
        set_verbosity=set_verbosity,
        has_page=flags["ui"],
    )


def written(flags: Flags) -> dict[str, str]:
    """Every flag with its value, as texts."""
    return {name: FLAGS[name].type.write(value) for name, value in flags.items()}
