"""Without records, their code is not loaded and no history is kept."""

import subprocess
import sys

from kubestow.testing import SchedulerHarness, make_node, make_pod

LOADED = """
import sys
import kubestow.cli.scheduler.process
print(*(name for name in sys.modules if name.startswith("kubestow.insight")))
"""


def test_nothing_is_imported() -> None:
    """The process of a scheduler does not load modules for records or the page."""
    found = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_nothing_is_collected() -> None:
    """Without records the cluster keeps no history."""
    with SchedulerHarness() as world:
        world.cluster.add(make_node("n", cpu="2"))
        for number in range(4):
            world.cluster.add(make_pod(f"p{number}", cpu="1"))
        world.run_until_idle()
        assert world.decisions is None
        assert world.core.cluster.history is None
