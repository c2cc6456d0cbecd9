"""Fixtures for tests marked `real`, which run with every folder in KUBEBUILDER_ASSETS."""

from pathlib import Path

import pytest

from support.integration.real_control_plane import folders

FOLDERS: list[Path | None] = [*folders()] or [None]


@pytest.fixture(scope="session", params=FOLDERS, ids=lambda folder: folder.name if folder else "none")
def assets(request: pytest.FixtureRequest) -> Path:
    """A folder with etcd and kube-apiserver."""
    if request.param is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    found: Path = request.param
    missing = [name for name in ("etcd", "kube-apiserver") if not (found / name).exists()]
    if missing:
        pytest.fail(f"KUBEBUILDER_ASSETS: {found} has no {' and no '.join(missing)}", pytrace=False)
    return found
