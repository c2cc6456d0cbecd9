"""Authentication of requests.

The user is, in this order: the one that a front proxy with a certificate of its authority names in headers; the common
name of a client certificate; the user of a bearer token, according to the API server. A request without credentials is
from `system:anonymous`; one with an invalid token is rejected.
"""

from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from kubestow.api.failures import CallError
from kubestow.client.requests import Requests
from kubestow.client.reviews import ReviewedUser, TokenReviewStatus
from kubestow.server.cache import ResponseCache
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request
from kubestow.server.http.receiving import COMMON_HEADERS
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

AUTHENTICATED = "system:authenticated"
ANONYMOUS = ReviewedUser(username="system:anonymous", groups=("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class FrontProxies:
    """The front proxies that may name users: the authorities of their certificates, and the headers they use."""

    authorities: tuple[x509.Certificate, ...]
    allowed_names: frozenset[str] = frozenset()
    user_headers: tuple[str, ...] = ("x-remote-user",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    uid_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)

    def uses_header(self, header: bytes) -> bool:
        """Return whether the proxies use a header (in lower case)."""
        name = header.decode("latin-1")
        exact = (*self.user_headers, *self.group_headers, *self.uid_headers)
        return name in (one.lower() for one in exact) or name.startswith(
            tuple(prefix.lower() for prefix in self.extra_prefixes)
        )

    def user_of(self, request: Request, certificate: x509.Certificate) -> ReviewedUser | None:
        """Return the user that a proxy names; None if the certificate is not of a proxy, or if it names no user."""
        if not issued_by(certificate, self.authorities):
            return None
        if self.allowed_names and _common_name(certificate) not in self.allowed_names:
            return None
        name = self._first(request, self.user_headers)
        if not name:
            return None
        groups = tuple(
            group.strip()
            for header in self.group_headers
            for group in request.header(header.lower().encode()).split(",")
            if group.strip()
        )
        return ReviewedUser(
            name, self._first(request, self.uid_headers), (*groups, AUTHENTICATED), self._extra(request)
        )

    @staticmethod
    def _first(request: Request, headers: tuple[str, ...]) -> str:
        return next((value for name in headers if (value := request.header(name.lower().encode()))), "")

    def _extra(self, request: Request) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for raw, value in request.headers.items():
            name = raw.decode("latin-1")
            for prefix in self.extra_prefixes:
                if name.startswith(prefix.lower()):
                    found[name.removeprefix(prefix.lower())] = (value.decode("latin-1"),)
        return found


class Authenticator:
    """Determines the user of a request."""

    def __init__(
        self,
        *,
        reviews: Requests | None,
        client_authorities: tuple[x509.Certificate, ...] = (),
        proxies: FrontProxies | None = None,
        cache_seconds: float = 10.0,
    ) -> None:
        """`reviews` sends tokens to the API server; without it tokens are ignored."""
        self._reviews = reviews
        self._client_authorities = client_authorities
        self._proxies = proxies
        self._tokens: ResponseCache[str, TokenReviewStatus] = ResponseCache(self._review, lambda _: cache_seconds)

    def trust(self, client_authorities: tuple[x509.Certificate, ...], proxies: FrontProxies | None) -> None:
        """Replace the trusted authorities."""
        self._client_authorities = client_authorities
        self._proxies = proxies

    def needs_header(self, header: bytes) -> bool:
        """Return whether a header of requests must be kept."""
        return header in COMMON_HEADERS or (self._proxies is not None and self._proxies.uses_header(header))

    async def authenticate(self, request: Request, connection: Connection) -> ReviewedUser:
        """Return the user of a request. Raises ApiError if its token is invalid or cannot be checked."""
        der = connection.peer_certificate_der
        if der is not None:
            certificate = x509.load_der_x509_certificate(der)
            if self._proxies is not None:
                user = self._proxies.user_of(request, certificate)
                if user is not None:
                    return user
            if issued_by(certificate, self._client_authorities):
                return _subject_of(certificate)
        scheme, _, token = request.header(b"authorization").partition(" ")
        if self._reviews is None or scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        return await self._user_of_token(token.strip())

    async def _user_of_token(self, token: str) -> ReviewedUser:
        try:
            status = await self._tokens.get(token)
        except CallError as error:
            log.error("Unable to authenticate the request", err=error)
            raise _unauthorized() from None
        if not status.authenticated:
            raise _unauthorized()
        return status.user

    async def _review(self, token: str) -> TokenReviewStatus:
        assert self._reviews is not None
        return await self._reviews.review_token(token)


def issued_by(certificate: x509.Certificate, authorities: tuple[x509.Certificate, ...]) -> bool:
    """Return whether one of the authorities signed a certificate. The TLS handshake has checked its validity period."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _subject_of(certificate: x509.Certificate) -> ReviewedUser:
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return ReviewedUser(_common_name(certificate), "", (*(str(group.value) for group in groups), AUTHENTICATED))


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")
