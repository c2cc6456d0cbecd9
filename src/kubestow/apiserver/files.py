"""Private files and folders: only their owner can read them, and nothing is written through links of other users."""

import os
import stat
from pathlib import Path


class ForeignLinkError(Exception):
    """A path is a symbolic link of another user; the message names it."""


def private_folder(path: Path) -> None:
    """Create a folder that only its owner can read, or restrict an existing one of this user. Raises OSError."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    restrict(path, 0o700)


def restrict(path: Path | int, mode: int) -> None:
    """Limit the permissions of a path or an open file to a mode, if this user owns it and it is a file or folder."""
    found = os.stat(path)
    is_own = found.st_uid == os.geteuid() and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    if is_own and found.st_mode & ~mode & 0o777:
        os.chmod(path, found.st_mode & mode)


def require_own_link(path: Path) -> None:
    """Raise ForeignLinkError if a path is a symbolic link that another user than root created."""
    if path.is_symlink() and path.lstat().st_uid not in (0, os.geteuid()):
        raise ForeignLinkError(f"{path} is a symbolic link of another user; remove it or choose another folder")


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file that only its owner can read; a link of this name is replaced, not followed."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
