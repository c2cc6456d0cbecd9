"""Feature gates: their defaults, how they are set, and invalid settings."""

import pytest

from kubestow.config.features import GATES, SCHEDULING_GATES, FeatureGateError, Features, gates_at
from kubestow.config.plugin_points import GATE_OF_PLUGIN
from kubestow.config.versions import VersionError, Versions, compatible_version, emulated_version
from support.project_scripts import load_script
from support.reference import REFERENCE, with_reference
from support.repository import ROOT


def faults_of(text: str) -> list[str]:
    with pytest.raises(FeatureGateError) as caught:
        Features.parse(text)
    return str(caught.value).splitlines()


def test_without_settings_gates_have_their_defaults() -> None:
    """An empty text is valid."""
    assert Features.parse("") == Features()
    assert Features().scheduler_async_preemption is True
    assert Features().generic_workload is False


@pytest.mark.parametrize(
    "text", ["GenericWorkload=true", "GenericWorkload=1", " GenericWorkload = T ,", "kube:GenericWorkload=True"]
)
def test_gates_are_set_by_name(text: str) -> None:
    """Names and booleans are those of kube-scheduler's command line, with or without the component."""
    assert Features.parse(text).generic_workload is True


def test_features_are_values() -> None:
    """Equal settings are equal and have equal hashes; a setting is immutable."""
    assert hash(Features.parse("GenericWorkload=true")) == hash(Features(generic_workload=True))
    with pytest.raises(AttributeError):
        Features().generic_workload = True  # type: ignore[misc]


def test_a_gate_is_found_by_its_name() -> None:
    """`enabled` takes the name as Kubernetes writes it."""
    assert Features().enabled("DRAExtendedResource")
    assert not Features.parse("DRADeviceTaintRules=false").enabled("DRADeviceTaintRules")
    assert all(isinstance(Features().enabled(gate), bool) for gate in GATE_OF_PLUGIN.values())


def test_a_stage_is_set_except_for_named_gates() -> None:
    """AllAlpha and AllBeta set all gates of a stage; a gate set by name keeps its setting, in any order."""
    unbuilt = ",".join(
        f"{line.split()[2].strip(',')}=false" for line in faults_of("AllAlpha=true,GenericWorkload=true")
    )
    alpha = Features.parse(f"TaintTolerationComparisonOperators=false,AllAlpha=true,GenericWorkload=true,{unbuilt}")
    assert alpha.topology_aware_workload_scheduling
    assert not alpha.taint_toleration_comparison_operators
    assert not alpha.scheduler_async_api_calls
    beta = Features.parse("AllBeta=false,SchedulerPopFromBackoffQ=true")
    assert beta.scheduler_pop_from_backoff_q
    assert not beta.scheduler_async_preemption
    assert beta.node_declared_features


def test_gates_of_other_components_are_accepted() -> None:
    """All components share one list of gates, so that a gate without effect here is not a fault."""
    assert Features.parse("KubeletInUserNamespace=true,LoggingAlphaOptions=true") == Features()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("SchedulerQueueingHints=true", "unrecognized feature gate: SchedulerQueueingHints"),
        ("WatchListClient", "missing bool value for WatchListClient"),
        (
            "GenericWorkload=on",
            'invalid value of GenericWorkload=on, err: strconv.ParseBool: parsing "on": invalid syntax',
        ),
        (
            "NodeDeclaredFeatures=false",
            "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
        ),
        (
            "TopologyAwareWorkloadScheduling=true",
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "DRANodeAllocatableResources=true",
            (
                "cannot enable DRANodeAllocatableResources, Kubestow does not have this feature: "
                "set DRANodeAllocatableResources=false"
            ),
        ),
        ("wardle:A=true", "component not registered: wardle"),
        (
            "kube:ContextualLogging=true,GenericWorkload=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
    ],
)
def test_faults_are_reported(text: str, expected: str) -> None:
    """Each fault has a line in kube-scheduler's words."""
    assert faults_of(text) == [expected]


def test_all_faults_are_reported_at_once() -> None:
    """Each fault has its line."""
    assert len(faults_of("Nope=true,NodeDeclaredFeatures=false,GenericWorkload")) == 3


def test_locked_gates_may_be_set_to_their_default() -> None:
    """Any other value is a fault."""
    assert Features.parse("NodeDeclaredFeatures=true") == Features()


def test_gates_are_those_of_the_emulated_version() -> None:
    """Defaults, stages and locks are those of that version."""
    versions = Versions(35, 34)
    features = Features.parse("NodeDeclaredFeatures=true", versions)
    assert features.node_declared_features
    assert not Features.parse("", versions).node_declared_features
    assert not features.storage_capacity_scoring
    assert Features().storage_capacity_scoring
    assert (gates_at(versions)["GenericWorkload"].stage, GATES["GenericWorkload"].stage) == ("ALPHA", "BETA")


def test_gates_of_later_versions_cannot_be_set() -> None:
    """They are off, and PreAlpha in kube-scheduler's words."""
    with pytest.raises(FeatureGateError) as caught:
        Features.parse("SchedulerPreQueueingHints=true", Versions(36, 35))
    assert str(caught.value) == (
        "cannot set feature gate SchedulerPreQueueingHints to true, feature is PreAlpha at emulated version 1.36, "
        "min compatibility version 1.35"
    )


def test_some_gates_are_on_only_if_no_component_is_older() -> None:
    """The default depends on --min-compatibility-version."""
    assert not GATES["DRAFractionalCapacityRange"].default
    assert gates_at(Versions(37, 37))["DRAFractionalCapacityRange"].default


@pytest.mark.parametrize(
    ("emulated", "compatible", "expected"),
    [
        ((), (), Versions(37, 36)),
        (("1.36",), (), Versions(36, 35)),
        (("kube=v1.34",), (), Versions(34, 34)),
        (("kube = 1.37.0",), ("1.37",), Versions(37, 37)),
        (("1.36",), ("kube=1.34",), Versions(36, 34)),
    ],
)
def test_versions_are_read(emulated: tuple[str, ...], compatible: tuple[str, ...], expected: Versions) -> None:
    """The component may be left out; by default, the version before the emulated one is the oldest."""
    minor = emulated_version(emulated)
    assert Versions(minor, compatible_version(compatible, minor)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("1.33",), "emulation version 1.33 is not between [1.34, 1.37.0]"),
        (("kube=1.38",), "emulation version 1.38 is not between [1.34, 1.37.0]"),
        (("new",), 'could not parse "new" as version'),
        (("1",), 'illegal version string "1"'),
        (("1.36.2",), "patch version not allowed, got: kube=1.36.2"),
        (("wardle=1.2",), "component not registered: wardle"),
        (("1.36", "kube=1.35"), "duplicate version flag, kube=1.36 and kube=1.35"),
    ],
)
def test_wrong_versions_are_reported(values: tuple[str, ...], expected: str) -> None:
    """The words are kube-scheduler's."""
    with pytest.raises(VersionError) as caught:
        emulated_version(values)
    assert str(caught.value) == expected


def test_a_compatible_version_is_not_newer_than_the_emulated_one() -> None:
    """Nor is it older than the versions that can be emulated."""
    for wrong in ("1.37", "1.33"):
        with pytest.raises(VersionError) as caught:
            compatible_version((wrong,), 36)
        assert str(caught.value) == f"minCompatibilityVersion version {wrong} is not between [1.34, 1.36]"


def test_states_without_effect_are_warned_of() -> None:
    """The reason is named, and so are alpha features of an emulated version."""
    assert list(Features().warnings()) == []
    for gate in ("InterPodAffinityHostnameFastPath", "SchedulerPreQueueingHints"):
        (warning,) = Features.parse(f"{gate}=true").warnings()
        assert warning.startswith(f"{gate}=true has no effect: ")
    (warning,) = Features.parse("DRAPartitionableDevicesType=true,DRAResourcePoolStatus=true").warnings()
    assert warning.startswith("DRAPartitionableDevicesType=true has no effect: ")
    old = Features.parse("DRAAdminAccess=false,DRAExtendedResource=true", Versions(34, 34))
    assert [warning.split(" ")[0] for warning in old.warnings()] == ["DRAAdminAccess=false", "component"]


def test_the_table_is_consistent() -> None:
    """Names are unique, needs exist, and the defaults meet the needs."""
    assert len(SCHEDULING_GATES) == len({gate.name for gate in SCHEDULING_GATES})
    assert {need for gate in GATES.values() for need in gate.needs} <= GATES.keys()
    assert {gate.stage for gate in GATES.values()} == {"ALPHA", "BETA", "GA", "DEPRECATED"}
    assert all(gate.default for gate in GATES.values() if gate.stage == "GA")
    assert not any(gate.default for gate in GATES.values() if gate.stage == "ALPHA")


@with_reference
def test_stages_and_defaults_are_those_of_the_help_of_kube_scheduler() -> None:
    """The recorded help text lists the gates that are neither GA nor deprecated."""
    listed = (REFERENCE / "v1.37" / "features.txt").read_text().splitlines()[1:]
    shown = [f"{gate.name} {gate.stage} - default={str(gate.default).lower()}" for gate in GATES.values()]
    assert set(listed) <= set(shown)


def test_the_reference_page_is_current() -> None:
    """docs/reference/feature-gates.md equals the output of its script."""
    script = load_script("feature_gates_page")
    assert (ROOT / "docs/reference/feature-gates.md").read_text() == script.page()
