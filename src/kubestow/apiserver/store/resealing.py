"""New checksums for a damaged write-ahead log, so that SQLite reads what follows the damage.

Each frame of the log is a page with a header: its number, the size of the database after a commit, the salts of the log
and a checksum that continues that of the frame before it. Hence one wrong bit makes all later frames invalid although
their pages are sound. Pages that are not are found by the checksums of rows.
"""

import struct
from pathlib import Path

_MAGIC = 0x377F0682
"""The magic number of logs whose checksums are of little-endian words."""
_VERSION = 3_007_000
_HEADER, _FRAME_HEADER, _PAGE = 32, 24, 4096
_WORDS = 0xFFFFFFFF


def reseal(path: Path) -> None:
    """Write the header of a log again, and the checksums of its frames up to those of an older log."""
    content = bytearray(path.read_bytes())
    if len(content) < _HEADER:
        return
    salts = struct.unpack_from(">2I", content, 16)
    struct.pack_into(">3I", content, 0, _MAGIC, _VERSION, _PAGE)
    sums = _continue((0, 0), content[:24])
    struct.pack_into(">2I", content, 24, *sums)
    for start in range(_HEADER, len(content) - _FRAME_HEADER - _PAGE + 1, _FRAME_HEADER + _PAGE):
        found = struct.unpack_from(">2I", content, start + 8)
        if found[0] != salts[0] and found[1] != salts[1]:
            break
        struct.pack_into(">2I", content, start + 8, *salts)
        page = start + _FRAME_HEADER
        sums = _continue(_continue(sums, content[start : start + 8]), content[page : page + _PAGE])
        struct.pack_into(">2I", content, start + 16, *sums)
    path.write_bytes(content)


def _continue(sums: tuple[int, int], data: bytearray) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"<{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _WORDS
        second = (second + odd + first) & _WORDS
    return first, second
