"""Many damaged data files: flipped bits, zeroed and lost parts, in each file of a server."""

import random
from pathlib import Path

import pytest

from support.apiserver.data_files import FILES, Written, flip, require_detection_and_repair

CASES = 60


@pytest.fixture(scope="module", params=["killed", "killed after a restart", "stopped"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The files of a server in different states."""
    folder = tmp_path_factory.mktemp("files") / "written"
    return Written(folder, 150, restart=request.param == "killed after a restart", stop=request.param == "stopped")


def damage(path: Path, chance: random.Random) -> None:
    """Flip bits, overwrite a part with zeros, or cut the file."""
    content = bytearray(path.read_bytes())
    start = chance.randrange(len(content))
    kind = chance.choice(("bit", "bit", "bits", "header", "zeros", "cut"))
    if kind == "zeros":
        content[start : start + 512] = bytes(len(content[start : start + 512]))
        path.write_bytes(content)
    elif kind == "cut":
        path.write_bytes(content[:start])
    else:
        flip(path, chance, 20 if kind == "bits" else 1, size=min(100, len(content)) if kind == "header" else None)


@pytest.mark.parametrize("name", FILES)
def test_damage_never_changes_what_is_served(written: Written, tmp_path: Path, name: str) -> None:
    """A start serves exactly what was acknowledged, or reports damage; repair keeps objects as they were written."""
    if not (written.folder / name).exists():
        pytest.skip("a stopped server has no write-ahead log")
    for seed in range(CASES):
        folder = written.copy(tmp_path / "copy")
        damage(folder / name, random.Random(seed))
        require_detection_and_repair(written, folder, seed)
