"""The search for dead code finds what it should, and nothing here."""

from pathlib import Path

from support.project_scripts import load_script


def test_what_nothing_uses_is_found(tmp_path: Path) -> None:
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
    script = load_script("dead_code")
    script.ROOT = tmp_path
    assert script.findings() == [
        "src/module.py:1: variable LIMIT is never used",
        "src/module.py:5: method forgotten is never used",
    ]
