"""Starts the HTTPS server of the scheduler with options from flags."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

from kubestow.cli.scheduler.live import LiveScheduler
from kubestow.cli.scheduler.serving import Serving
from kubestow.cli.scheduler.settings import Flags, Settings, SettingsError, flag_values, listening_address
from kubestow.server.authentication import FrontProxies
from kubestow.server.authorities import configured_authorities
from kubestow.server.options import ServingOptions
from kubestow.server.tls import ServerContexts, ServerTls, TlsError


async def serve(settings: Settings, live: LiveScheduler, listener: socket.socket) -> None:
    """Serve until cancelled. Raises SettingsError, CallError."""
    options = _options(settings.flags, settings.set_verbosity)
    async with AsyncExitStack() as stack:
        page = None
        if options.has_page and live.decisions is not None:
            # Imported only now: few want it.
            from kubestow.cli.scheduler.page import LivePage

            page = await stack.enter_async_context(LivePage(live, live.decisions, "kubestow scheduler"))
        server = Serving(options, live, page)
        stack.push_async_callback(server.stop)
        try:
            await server.start(listener)
        except TlsError as error:
            raise SettingsError(str(error)) from None
        await asyncio.get_running_loop().create_future()


def check_certificates(flags: Flags) -> None:
    """Load certificates, keys and authorities as the server does. Raises SettingsError if one is invalid."""
    options = _options(flags, lambda _: None)
    try:
        authorities = configured_authorities(options)
        authorities.of_clients()
        authorities.front_proxies(options.proxies)
        ServerContexts(options.tls, options.listening.certificate_hosts)
    except TlsError as error:
        raise SettingsError(str(error)) from None


def _options(flags: Flags, set_verbosity: Callable[[int], None]) -> ServingOptions:
    return ServingOptions(
        listening=listening_address(flags),
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
        flags=flag_values(flags),
        set_verbosity=set_verbosity,
        has_page=flags["ui"],
    )
