"""The options of the scheduler's server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubestow.server.authentication import FrontProxies
from kubestow.server.listening import Listening
from kubestow.server.tls import ServerTls


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The values of the serving flags."""

    listening: Listening = field(default_factory=Listening)
    tls: ServerTls = field(default_factory=ServerTls)
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    skips_lookup: bool = False
    tolerates_lookup_failure: bool = True
    client_ca_file: str = ""
    proxy_ca_file: str = ""
    proxies: FrontProxies = field(default_factory=lambda: FrontProxies(()))
    """The flags about front proxies, without their authorities."""
    token_seconds: float = 10.0
    allowed_seconds: float = 10.0
    denied_seconds: float = 10.0
    open_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    flags: Mapping[str, str] = field(default_factory=dict)
    set_verbosity: Callable[[int], None] = lambda _: None
    has_page: bool = False
    """Whether the web page is served, too."""
