"""Who asks.

In this order: the user that a front proxy names in headers, if the proxy shows a certificate of its authority; the
common name of a client certificate; the user of a bearer token, as the API server says. Who shows nothing is
`system:anonymous`; who shows a token that nobody knows is refused.
"""

from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from kubestow.api.failures import CallError
from kubestow.client.requests import Requests
from kubestow.client.reviews import ReviewedUser, TokenReviewStatus
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request
from kubestow.server.http.receiving import COMMON_HEADERS
from kubestow.server.remembering import Remembered
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

AUTHENTICATED = "system:authenticated"
ANONYMOUS = ReviewedUser(username="system:anonymous", groups=("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class FrontProxies:
    """Proxies whose word about users is taken: the authorities of their certificates, and the headers they use."""

    authorities: tuple[x509.Certificate, ...]
    allowed_names: frozenset[str] = frozenset()
    user_headers: tuple[str, ...] = ("x-remote-user",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    uid_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)

    def keeps(self, header: bytes) -> bool:
        """Whether a header (in lower case) is one of theirs."""
        name = header.decode("latin-1")
        exact = (*self.user_headers, *self.group_headers, *self.uid_headers)
        return name in (one.lower() for one in exact) or name.startswith(
            tuple(prefix.lower() for prefix in self.extra_prefixes)
        )

    def user_of(self, request: Request, certificate: x509.Certificate) -> ReviewedUser | None:
        """The user that a proxy names; None if it is no proxy, or names nobody."""
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
    """Tells who asks; raises ApiError for those who say a lie."""

    def __init__(
        self,
        *,
        reviews: Requests | None,
        client_authorities: tuple[x509.Certificate, ...] = (),
        proxies: FrontProxies | None = None,
        remember_seconds: float = 10.0,
    ) -> None:
        """`reviews` asks the API server about tokens; without it tokens are not looked at."""
        self._reviews = reviews
        self._client_authorities = client_authorities
        self._proxies = proxies
        self._tokens: Remembered[str, TokenReviewStatus] = Remembered(self._ask, lambda _: remember_seconds)

    def trust(self, client_authorities: tuple[x509.Certificate, ...], proxies: FrontProxies | None) -> None:
        """Believe certificates of these authorities from now on, and no others."""
        self._client_authorities = client_authorities
        self._proxies = proxies

    def keeps(self, header: bytes) -> bool:
        """Whether a header of requests is needed."""
        return header in COMMON_HEADERS or (self._proxies is not None and self._proxies.keeps(header))

    async def user_of(self, request: Request, connection: Connection) -> ReviewedUser:
        der = connection.peer_certificate_der
        if der is not None:
            certificate = x509.load_der_x509_certificate(der)
            if self._proxies is not None:
                user = self._proxies.user_of(request, certificate)
                if user is not None:
                    return user
            if issued_by(certificate, self._client_authorities):
                return _named_by(certificate)
        scheme, _, token = request.header(b"authorization").partition(" ")
        if self._reviews is None or scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        return await self._user_of_token(token.strip())

    async def _user_of_token(self, token: str) -> ReviewedUser:
        try:
            answer = await self._tokens.get(token)
        except CallError as error:
            log.error("Unable to authenticate the request", err=error)
            raise _unauthorized() from None
        if not answer.authenticated:
            raise _unauthorized()
        return answer.user

    async def _ask(self, token: str) -> TokenReviewStatus:
        assert self._reviews is not None
        return await self._reviews.review_token(token)


def issued_by(certificate: x509.Certificate, authorities: tuple[x509.Certificate, ...]) -> bool:
    """Whether one of the authorities signed it; that it is valid now, the handshake has seen to."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _named_by(certificate: x509.Certificate) -> ReviewedUser:
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return ReviewedUser(_common_name(certificate), "", (*(str(group.value) for group in groups), AUTHENTICATED))


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")
