"""Control planes as fixtures: the mark `control_plane` of a test or module has their options."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.apiserver.running import Running, run_bare


def _marked(request: pytest.FixtureRequest, folder: Path) -> Iterator[Running]:
    mark = request.node.get_closest_marker("control_plane")
    options = dict(mark.kwargs) if mark else {}
    if tokens := options.pop("tokens", ""):
        options["token_file"] = folder / "tokens.csv"
        options["token_file"].write_text(tokens)
    with run_bare(**options) as running:
        yield running


@pytest.fixture
def plane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """Start a control plane; by default a bare API server."""
    yield from _marked(request, tmp_path)


@pytest.fixture(scope="module")
def shared_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a control plane that all tests of a module use; by default a bare API server."""
    yield from _marked(request, tmp_path_factory.mktemp("plane"))
