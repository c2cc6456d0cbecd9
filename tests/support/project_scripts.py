"""The scripts of the project, as modules."""

import importlib.util
from typing import Any

from support.repository import ROOT


def load_script(name: str) -> Any:
    """The module scripts/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
