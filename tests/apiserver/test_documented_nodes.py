"""The example of a description of nodes in the documentation is valid."""

import re
from pathlib import Path

from kubestow.apiserver.kubelets import description
from support.repository import ROOT

PAGE = ROOT / "docs" / "how-to" / "run-a-control-plane.md"


def test_the_example_describes_four_nodes(tmp_path: Path) -> None:
    """Three large ones and one with a GPU."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "nodes.yaml"
    path.write_text(block)
    names = [node["metadata"]["name"] for node in description.read(path)]
    assert names == ["big-0", "big-1", "big-2", "gpu"]
