"""Tests, and scripts that use them, share code through tests/support only."""

import ast

from support.repository import ROOT

TESTS = ROOT / "tests"


def imported_modules(source: str) -> set[str]:
    """Return the names of imported modules, and of what is imported from them."""
    found: set[str] = set()
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            found.update(f"{statement.module}.{alias.name}" for alias in statement.names)
    return found


def test_tests_do_not_import_from_test_modules() -> None:
    """A helper of several tests belongs in tests/support."""
    paths = [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]
    modules = {".".join(path.relative_to(TESTS).with_suffix("").parts) for path in paths}
    found = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in [*TESTS.rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
        for name in imported_modules(path.read_text(encoding="utf-8"))
        if name in modules or name.rpartition(".")[0] in modules
    }
    assert sorted(found) == []
