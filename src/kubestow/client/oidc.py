"""OpenID Connect: an id token from the kubeconfig, refreshed at the identity provider when it has expired.

Providers often return a new refresh token with every id token and revoke the old one, so both are written back to the
kubeconfig, as kubectl does.
"""

import asyncio
import base64
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import yaml

from kubestow.api.failures import ApiError, TransportError
from kubestow.client.api import ApiClient, Channel
from kubestow.client.auth import Expiring, Fixed, basic, bearer
from kubestow.client.dialing import Dialer, parse_server
from kubestow.client.errors import CredentialsError
from kubestow.client.pool import Pool
from kubestow.client.proxies import proxy_from_environment
from kubestow.client.secretive import Secretive
from kubestow.client.tls import TlsContexts, TlsSettings
from kubestow.clock import Clock
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

S = TypeVar("S", bound=msgspec.Struct)

PROVIDER_SECONDS = 30.0
_LEEWAY = 10.0


class OidcSettings(Secretive, frozen=True):
    """The `auth-provider` entry of a user: its kubeconfig, its path in it, and its settings."""

    kubeconfig: str
    user: str
    place: str
    config: tuple[tuple[str, str], ...] = ()


class _Discovery(msgspec.Struct):
    token_endpoint: str = ""


class _Tokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""


class _Claims(msgspec.Struct):
    exp: float = 0.0


class OidcAuth(Expiring):
    """Provides the id token; requests the next one from the provider when it expires."""

    def __init__(self, settings: OidcSettings, source: str, environ: Mapping[str, str], clock: Clock) -> None:
        super().__init__(clock)
        self._settings = settings
        self._source = source
        self._environ = environ
        self._config = dict(settings.config)
        token = self._config.get("id-token", "")
        if token:
            self._lines, self._expires = bearer(token), _expiry(token)

    async def _fetch(self) -> tuple[bytes, float]:
        config = self._config
        if not config.get("refresh-token"):
            raise self._problem("refresh-token", "not set, and the id token is no longer valid; log in again")
        issuer = config["idp-issuer-url"].rstrip("/")
        found = await self._request("GET", f"{issuer}/.well-known/openid-configuration")
        endpoint = self._decode(found, _Discovery).token_endpoint
        if not endpoint:
            raise self._problem("idp-issuer-url", f"{issuer} names no token endpoint")
        form = {"grant_type": "refresh_token", "refresh_token": config["refresh-token"]}
        answer = await self._request("POST", endpoint, urlencode(form).encode())
        tokens = self._decode(answer, _Tokens)
        if not tokens.id_token:
            raise self._problem("idp-issuer-url", "the provider answered without an id token")
        config["id-token"] = tokens.id_token
        config["refresh-token"] = tokens.refresh_token or config["refresh-token"]
        self._write_back()
        return bearer(tokens.id_token), _expiry(tokens.id_token)

    async def _request(self, method: str, url: str, form: bytes = b"") -> bytes:
        endpoint = parse_server(url, self._source, f"{self._settings.place}.config.idp-issuer-url")
        loop = asyncio.get_running_loop()
        proxy = proxy_from_environment(endpoint.scheme, endpoint.host, endpoint.port, self._environ)
        dial = Dialer(endpoint, TlsContexts(self._tls()), loop, proxy=proxy)
        user = basic(quote(self._config["client-id"]), quote(self._config.get("client-secret", ""))) if form else b""
        channel = Channel(endpoint, Pool(dial, 1, loop), Fixed(user))
        client = ApiClient(channel, user_agent="kubestow", seconds=PROVIDER_SECONDS)
        query = urlsplit(url).query
        path = ("" if endpoint.prefix else "/") + (f"?{query}" if query else "")
        try:
            return (await client.request(method, path, form, "application/x-www-form-urlencoded")).body
        except ApiError as error:
            problem = f"the provider answered {error.code} to {method} {url}"
        except TransportError as error:
            problem = f"the provider does not answer: {error}"
        finally:
            channel.close()
        raise self._problem("idp-issuer-url", problem)

    def _tls(self) -> TlsSettings:
        data = self._config.get("idp-certificate-authority-data", "")
        try:
            decoded = base64.b64decode(data, validate=True) if data else None
        except ValueError:
            raise self._problem("idp-certificate-authority-data", "not base64") from None
        ca_file = self._config.get("idp-certificate-authority", "")
        if ca_file:
            ca_file = str(Path(self._settings.kubeconfig).parent / ca_file)
        return TlsSettings(source=self._source, ca_data=decoded, ca_file=ca_file)

    def _write_back(self) -> None:
        path = Path(self._settings.kubeconfig)
        try:
            tree = yaml.safe_load(path.read_bytes())
            user = next(entry["user"] for entry in tree["users"] if entry["name"] == self._settings.user)
            user["auth-provider"]["config"].update(self._config)
            mode = path.stat().st_mode & 0o777
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, mode)
                yaml.safe_dump(tree, file, sort_keys=False)
            os.replace(temporary, path)
        except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
            log.warning("Refreshed tokens could not be saved", err=type(error).__name__, path=path)

    def _decode(self, body: bytes, kind: type[S]) -> S:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._problem("idp-issuer-url", "the provider's answer does not conform to OpenID Connect") from None

    def _problem(self, named: str, problem: str) -> CredentialsError:
        return CredentialsError(self._source, f"{self._settings.place}.config.{named}", problem)


def _expiry(token: str) -> float:
    """Return the time at which a JWT must be refreshed, shortly before it expires; 0 if it cannot be decoded."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (IndexError, ValueError):
        return 0.0
    return claims.exp - _LEEWAY
