"""Credential plugins: a command that prints an ExecCredential with a token or a client certificate.

It is run when the previous credential has expired or was rejected, once for all waiting requests. Its standard error is
that of this process, so that it can prompt the user; its standard output is never shown.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubestow.client.auth import Expiring, bearer
from kubestow.client.errors import CredentialsError
from kubestow.client.pool import Pool
from kubestow.client.secretive import Secretive
from kubestow.client.tls import Certificate, TlsContexts
from kubestow.clock import Clock
from kubestow.telemetry.metrics.client import ClientMetrics

PLUGIN_SECONDS = 60.0


class ExecPlugin(Secretive, frozen=True):
    """The command and its environment; `place` is the path of its entry in the kubeconfig."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Mapping[str, Any] | None = None
    place: str = "exec"


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecAuth(Expiring):
    """Runs the plugin; new connections present the certificate that it returns."""

    def __init__(
        self,
        plugin: ExecPlugin,
        source: str,
        tls: TlsContexts,
        pool: Pool,
        environ: Mapping[str, str],
        clock: Clock,
        metrics: ClientMetrics,
    ) -> None:
        super().__init__(clock)
        self._plugin = plugin
        self._source = source
        self._tls = tls
        self._pool = pool
        self._environ = environ
        self._metrics = metrics
        self._obtained: float | None = None

    async def _fetch(self) -> tuple[bytes, float]:
        try:
            status = await self._run()
        except CredentialsError:
            self._metrics.exec_plugin_calls.inc("plugin_execution_error", "1")
            raise
        if status.client_certificate_data:
            certificate = Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
            if self._tls.set_certificate(certificate):
                self._pool.close_idle()
        expires = float("inf")
        if status.expiration_timestamp is not None:
            moment = status.expiration_timestamp
            expires = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        self._count(expires)
        return (bearer(status.token) if status.token else b"", expires)

    def _count(self, expires: float) -> None:
        self._metrics.exec_plugin_calls.inc("no_error", "0")
        self._metrics.exec_plugin_ttl.track(lambda: expires - self._clock.now())
        now = self._clock.now()
        if self._obtained is not None:
            self._metrics.exec_plugin_rotation_age.observe(now - self._obtained)
        self._obtained = now

    async def _run(self) -> _Status:
        plugin = self._plugin
        interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if plugin.interactive_mode == "Always" and not interactive:
            raise self._problem("interactiveMode", "is Always, but standard input is not a terminal")
        spec: dict[str, Any] = {"interactive": interactive}
        if plugin.cluster is not None:
            spec["cluster"] = plugin.cluster
        info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
        environ = {**self._environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        if shutil.which(plugin.command, path=environ.get("PATH", os.defpath)) is None:
            hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
            raise self._problem("command", f"{plugin.command!r} is not an executable on the PATH{hint}")
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=environ,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._problem("command", f"{plugin.command!r} took more than {PLUGIN_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise self._problem("command", f"{plugin.command!r} failed with exit code {process.returncode}")
        return self._parse(output)

    def _parse(self, output: bytes) -> _Status:
        try:
            credential = msgspec.json.decode(output, type=_Credential)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The error would repeat parts of the output.
            raise self._problem("command", "printed something that is not an ExecCredential") from None
        if credential.kind != "ExecCredential" or credential.api_version != self._plugin.api_version:
            raise self._problem(
                "apiVersion", f"the plugin returned another kind or version than {self._plugin.api_version}"
            )
        status = credential.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._problem("command", "printed neither a token nor a client certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._problem("command", "printed a certificate without its key, or a key without its certificate")
        return status

    def _problem(self, named: str, problem: str) -> CredentialsError:
        return CredentialsError(self._source, f"{self._plugin.place}.{named}", problem)
