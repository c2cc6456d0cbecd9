"""The plugins that exist, and the extension points that the configuration believes they have."""

import dataclasses
import subprocess
import sys

import pytest

from kubestow import config
from kubestow.cluster.state import Cluster
from kubestow.config.features import Features
from kubestow.config.plugin_args import ARGS_OF_PLUGIN
from kubestow.config.plugin_points import GATE_OF_PLUGIN
from kubestow.config.plugin_points import IN_TREE as POINTS
from kubestow.config.plugin_points import LEGACY as LEGACY_POINTS
from kubestow.framework.profile import ProfileError
from kubestow.framework.registry import check_signatures, points_of
from kubestow.testing.handles import offline_handle
from kubestow.wiring.profiles import build_profiles
from kubestow.wiring.registry import IN_TREE, LEGACY, NOT_IMPLEMENTED, in_tree_registry, plugin_class

NAMES = sorted({*IN_TREE, *LEGACY})

MISSING_POINTS = {"NodeResourcesFit": {"placementScore"}}
"""Points of kube-scheduler's plugins that are missing here: placing groups of pods."""


def test_every_plugin_exists_or_is_known_to_be_missing() -> None:
    """The configuration knows no other plugins than the registry, but for those not implemented."""
    assert set(POINTS) == {*NAMES} | NOT_IMPLEMENTED
    assert not {*NAMES} & NOT_IMPLEMENTED
    assert not set(IN_TREE) & set(LEGACY)
    assert set(LEGACY_POINTS) == set(LEGACY)


def test_legacy_plugins_are_imported_when_one_is_made() -> None:
    """Whoever names none does not pay for them."""
    program = """
import sys
from kubestow.cluster.state import Cluster
from kubestow.testing.handles import offline_handle
from kubestow.wiring.registry import in_tree_registry
registry = in_tree_registry()
print(any(name.startswith("kubestow.plugins.legacy") for name in sys.modules))
registry.make("NodePreferAvoidPods", None, offline_handle(Cluster()))
print(sorted(name for name in sys.modules if name.startswith("kubestow.plugins.legacy.")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n['kubestow.plugins.legacy.node_prefer_avoid_pods']\n"


@pytest.mark.parametrize("name", NAMES)
def test_points_are_those_of_the_configuration(name: str) -> None:
    """A plugin has the methods of exactly the points that the configuration enables it at."""
    assert points_of(plugin_class(name)) == POINTS[name] - MISSING_POINTS.get(name, set())


@pytest.mark.parametrize("name", NAMES)
def test_every_plugin_can_be_made_with_its_default_arguments(name: str) -> None:
    """And has the signatures of its points, under its name."""
    args = ARGS_OF_PLUGIN[name]() if name in ARGS_OF_PLUGIN else None
    plugin = in_tree_registry().make(name, args, offline_handle(Cluster()))
    check_signatures(plugin)
    assert plugin.name == name


@pytest.mark.parametrize("name", sorted(NOT_IMPLEMENTED))
def test_plugins_that_are_not_implemented_are_refused(name: str) -> None:
    """When enabled they fail the start with words that name them and what to do, by file or by feature gate."""
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles:\n- plugins:\n    multiPoint:\n      enabled: [{{name: {name}}}]\n"
    )
    everything = Features.parse("AllAlpha=true,AllBeta=true")
    field = next(f.name for f in dataclasses.fields(Features) if f.metadata["gate"].name == GATE_OF_PLUGIN[name])
    assert getattr(everything, field)
    for configuration in (config.load(text), config.default(everything)):
        with pytest.raises(ProfileError) as caught:
            build_profiles(configuration, in_tree_registry(), offline_handle(Cluster()), lambda: 0.0)
        words = str(caught.value)
        assert words.startswith("profile default-scheduler: plugin ")
        assert "is not implemented: disable it, or the feature gate " in words
    with pytest.raises(ProfileError, match=f"plugin {name} is not implemented"):
        build_profiles(config.load(text), in_tree_registry(), offline_handle(Cluster()), lambda: 0.0)
