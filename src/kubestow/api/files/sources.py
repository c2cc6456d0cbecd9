"""Reading of text from files, the files of a folder, and standard input."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

_SUFFIXES = (".yaml", ".yml", ".json")


class Source(msgspec.Struct, frozen=True):
    """The text of a file and the name of the file in error messages."""

    name: str
    text: str


def sources(path: str) -> Iterator[Source]:
    """Yield the file, the files of a folder (not recursively), or, for `-`, standard input.

    Raises OSError, or UnicodeDecodeError for text that is not UTF-8.
    """
    if path == "-":
        yield Source("standard input", text_of(path))
    elif not Path(path).is_dir():
        yield Source(path, text_of(path))
    else:
        files = sorted(file for file in Path(path).iterdir() if file.suffix in _SUFFIXES and file.is_file())
        if not files:
            raise FileNotFoundError(2, f"the folder has no files that end with {', '.join(_SUFFIXES)}", path)
        for file in files:
            yield Source(str(file), text_of(str(file)))


def text_of(path: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises OSError or UnicodeDecodeError."""
    content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    return content.decode("utf-8-sig")


def describe_error(error: OSError | UnicodeDecodeError) -> str:
    """Return the reason for which a file could not be read, in one line."""
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 text: {error.reason} at byte {error.start}"
    return f"cannot be read: {error.strerror or error}"
