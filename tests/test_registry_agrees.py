"""The plugins that exist, and the extension points that the configuration believes they have."""

import subprocess
import sys

import pytest

from kubestow import config
from kubestow.config.features import SCHEDULING_GATES, Features
from kubestow.config.plugin_args import ARGS_OF_PLUGIN
from kubestow.config.plugin_points import IN_TREE as POINTS
from kubestow.config.plugin_points import LEGACY as LEGACY_POINTS
from kubestow.config.plugin_points import OWN
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.registry import check_signatures, points_of
from kubestow.scheduler.in_tree import MODULES, in_tree_registry, plugin_class
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles

NAMES = sorted(MODULES)
LEGACY = {name for name, module in MODULES.items() if module.startswith("legacy.")}


def test_every_plugin_exists() -> None:
    """The configuration knows no other plugins than the registry."""
    assert set(POINTS) == {*NAMES}
    assert set(LEGACY_POINTS) == LEGACY


def test_legacy_plugins_are_imported_when_one_is_made() -> None:
    """Importing them costs nothing where no profile names one."""
    program = """
import sys
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.in_tree import in_tree_registry
registry = in_tree_registry()
print(any(name.startswith("kubestow.scheduler.plugins.legacy") for name in sys.modules))
registry.make("NodePreferAvoidPods", None, offline_handle(Cluster()))
print(sorted(name for name in sys.modules if name.startswith("kubestow.scheduler.plugins.legacy.")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n['kubestow.scheduler.plugins.legacy.node_prefer_avoid_pods']\n"


@pytest.mark.parametrize("name", NAMES)
def test_points_are_those_of_the_configuration(name: str) -> None:
    """A plugin has the methods of exactly the points that the configuration enables it at."""
    assert points_of(plugin_class(name)) == POINTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_plugin_can_be_made_with_its_default_arguments(name: str) -> None:
    """And has the signatures of its points, under its name."""
    args = ARGS_OF_PLUGIN[name]() if name in ARGS_OF_PLUGIN else None
    plugin = in_tree_registry().make(name, args, offline_handle(Cluster()))
    check_signatures(plugin)
    assert plugin.name == name


def test_every_plugin_can_be_enabled_at_once() -> None:
    """With all features on, the default profile has every plugin of kube-scheduler."""
    everything = Features.running({gate.name: True for gate in SCHEDULING_GATES})
    made = build_profiles(
        config.default(everything), in_tree_registry(), offline_handle(Cluster(everything)), lambda: 0.0
    )
    assert made["default-scheduler"].plugins.keys() == set(MODULES) - LEGACY - set(OWN)
