"""Event loops and TLS of the servers under test."""

import asyncio
import ssl

import pytest
import uvloop

from kubestow.apiserver.auth import certificates
from support.server.talking import Run, Tls


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a test on each event loop."""
    return uvloop.run if request.param == "uvloop" else asyncio.run


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for localhost, and a client context that trusts it."""
    made = certificates.ensure(tmp_path_factory.mktemp("pki"), ())
    return Tls(made.server_context(), ssl.create_default_context(cafile=str(made.ca)))
