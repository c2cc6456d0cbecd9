"""What a server stores can be read by its owner only, and links of other users are not followed."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.apiserver import StartError
from support.apiserver.running import Running

STRANGER = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")


def _mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def _modes(folder: Path, *more: Path) -> set[str]:
    files = [folder / "objects.db", folder / "pki" / "admin.kubeconfig", *(folder / "pki").glob("*.key"), *more]
    return {_mode(path) for path in files}


@pytest.mark.parametrize("older", [False, True], ids=["new", "of an earlier version"])
def test_data_folder_and_audit_log_are_private(start: Callable[..., Running], tmp_path: Path, older: bool) -> None:
    """Also those that an earlier version created for all to read."""
    folder = tmp_path / "data"
    log = folder / "audit.jsonl"
    start(data_dir=folder, audit_log=log).stop()
    if older:
        for path in (folder, folder / "pki"):
            path.chmod(0o755)
        for path in (log, folder / "objects.db"):
            path.chmod(0o644)
        start(data_dir=folder, audit_log=log).stop()
    assert {_mode(folder), _mode(folder / "pki")} == {"0o700"}
    assert _modes(folder, log) == {"0o600"}


def test_a_shared_folder_stays_shared(start: Callable[..., Running], tmp_path: Path) -> None:
    """A folder with other content is not locked; what the server stores in it is private."""
    tmp_path.chmod(0o755)
    (tmp_path / "notes.txt").touch()
    start(data_dir=tmp_path).stop()
    assert (_mode(tmp_path), _mode(tmp_path / "pki")) == ("0o755", "0o700")
    assert _modes(tmp_path) == {"0o600"}


def test_the_audit_log_may_be_a_device(start: Callable[..., Running]) -> None:
    """Its permissions are not changed."""
    before = _mode(Path("/dev/null"))
    start(audit_log=Path("/dev/null")).stop()
    assert _mode(Path("/dev/null")) == before


@as_root
def test_what_another_user_owns_is_not_changed(start: Callable[..., Running], tmp_path: Path) -> None:
    """A server may store objects in a volume that belongs to another user."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    os.chown(folder, STRANGER, STRANGER)
    start(data_dir=folder).stop()
    assert _mode(folder) == "0o755"


@as_root
@pytest.mark.parametrize(
    "name", ["objects.db", "objects.db-wal", "objects.mark", "pki", "pki/ca.crt", "pki/admin.token"]
)
def test_links_of_other_users_are_refused(start: Callable[..., Running], tmp_path: Path, name: str) -> None:
    """They could lead to any file; it is neither read nor written."""
    folder, target = tmp_path / "data", tmp_path / "target"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(target)
    os.lchown(folder / name, STRANGER, STRANGER)
    with pytest.raises(StartError, match=f"{name} is a symbolic link of another user"):
        start(data_dir=folder)
    assert not target.exists()


def test_certificates_and_tokens_are_not_written_through_links(start: Callable[..., Running], tmp_path: Path) -> None:
    """The link is replaced by the file."""
    folder, target = tmp_path / "data", tmp_path / "target"
    (folder / "pki").mkdir(parents=True)
    target.write_text("kept")
    for name in ("ca.crt", "server.crt", "server.key"):
        (folder / "pki" / name).symlink_to(target)
    start(data_dir=folder).stop()
    assert target.read_text() == "kept"
    assert not any(path.is_symlink() for path in (folder / "pki").iterdir())


def test_a_folder_may_be_a_link_of_its_owner(start: Callable[..., Running], tmp_path: Path) -> None:
    """The folder to which it leads becomes private; links in a circle are reported."""
    (tmp_path / "real").mkdir(mode=0o755)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    start(data_dir=link).stop()
    assert _mode(tmp_path / "real") == "0o700"
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(StartError, match="circle"):
        start(data_dir=circle)
