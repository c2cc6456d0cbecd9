"""The pages of the scheduler in `kubestow up`: at a free port of this host, which the kubeconfig names.

`kubestow explain` finds the records of decisions there; the API server authorizes access to them. The web page has
its own port without TLS, and access by its address: a browser would warn of an unknown certificate.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubestow.apiserver import ControlPlane
from kubestow.apiserver.auth.kubeconfig import add_scheduler
from kubestow.cli.scheduler.live import LiveScheduler
from kubestow.cli.scheduler.page import LivePage
from kubestow.cli.scheduler.serving import Serving
from kubestow.insight.page.local import LocalServer, load_or_create_token
from kubestow.server.listening import Listening
from kubestow.server.options import ServingOptions
from kubestow.server.tls import ServerTls

_HOST = "127.0.0.1"


@asynccontextmanager
async def scheduler_pages(plane: ControlPlane, scheduler: LiveScheduler) -> AsyncIterator[None]:
    """Serve them, with the API server's own certificate; raises ListenError."""
    certificates, kubeconfig = plane.ca.parent, str(plane.kubeconfig_path)
    options = ServingOptions(
        listening=Listening(_HOST, 0),
        tls=ServerTls(cert_file=str(certificates / "server.crt"), key_file=str(certificates / "server.key")),
        authentication_kubeconfig=kubeconfig,
        authorization_kubeconfig=kubeconfig,
        skips_lookup=True,
        client_ca_file=str(plane.ca),
    )
    serving = Serving(options, scheduler)
    try:
        await serving.start()
        add_scheduler(plane.kubeconfig_path, f"https://{_HOST}:{serving.port}")
        yield
    finally:
        await serving.stop()


@asynccontextmanager
async def page(plane: ControlPlane, scheduler: LiveScheduler, port: int) -> AsyncIterator[str]:
    """Serve the web page; yields its address. Raises ListenError."""
    assert scheduler.decisions is not None
    async with LivePage(scheduler, scheduler.decisions, "kubestow up") as site:
        server = LocalServer(site, load_or_create_token(plane.ca.parent / "page-token"), "--page-port")
        try:
            yield await server.start(port)
        finally:
            await server.stop()
