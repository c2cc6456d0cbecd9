"""The search for dead code finds what it should, and nothing here."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dead_code", ROOT / "scripts/dead_code.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_nothing_uses_is_found(script: ModuleType, tmp_path: Path) -> None:
    """Functions, methods and constants; not fields of structs, nor what libraries call."""
    (tmp_path / "src").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "src/module.py").write_text(
        "LIMIT = 3\n"
        "class Pod:\n"
        "    name: str\n"
        "    def data_received(self): ...\n"
        "    def forgotten(self): ...\n"
        "def used(): ...\n"
    )
    (tmp_path / "scripts/run.py").write_text("from module import Pod, used\nused(Pod())\n")
    script.ROOT = tmp_path  # type: ignore[attr-defined]
    assert script.findings() == [
        "src/module.py:1: variable LIMIT is never used",
        "src/module.py:5: method forgotten is never used",
    ]
