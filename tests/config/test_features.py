"""Feature gates: their defaults, how they are set, and invalid settings."""

import pytest

from kubestow.config.features import GATES, SCHEDULING_GATES, FeatureGateError, Features
from kubestow.config.plugin_points import GATE_OF_PLUGIN
from support.project_scripts import load_script
from support.repository import ROOT


def faults_of(text: str) -> list[str]:
    with pytest.raises(FeatureGateError) as caught:
        Features.parse(text)
    return str(caught.value).splitlines()


def test_without_settings_gates_have_their_defaults() -> None:
    """An empty text is valid."""
    assert Features.parse("") == Features()
    assert Features().scheduler_async_preemption is True
    assert Features().gang_scheduling is False


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
    assert not Features.parse("DRAExtendedResource=false").enabled("DRAExtendedResource")
    assert all(isinstance(Features().enabled(gate), bool) for gate in GATE_OF_PLUGIN.values())


def test_a_stage_is_set_except_for_named_gates() -> None:
    """AllAlpha and AllBeta set all gates of a stage; a gate set by name keeps its setting, in any order."""
    alpha = Features.parse("StorageCapacityScoring=false,AllAlpha=true")
    assert alpha.gang_scheduling
    assert not alpha.storage_capacity_scoring
    assert not alpha.scheduler_async_api_calls
    beta = Features.parse("AllBeta=false,SchedulerPopFromBackoffQ=true")
    assert beta.scheduler_pop_from_backoff_q
    assert not beta.scheduler_async_preemption
    assert beta.scheduler_queueing_hints


def test_gates_of_other_components_are_accepted() -> None:
    """All components share one list of gates, so that a gate without effect here is not a fault."""
    assert Features.parse("KubeletInUserNamespace=true,LoggingAlphaOptions=true") == Features()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("WatchListClient", "missing value for feature gate WatchListClient: write WatchListClient=true or =false"),
        ("GenericWorkload=on", 'invalid value for feature gate GenericWorkload: must be true or false, not "on"'),
        ("SidecarContainers=false", "cannot set feature gate SidecarContainers to false: it is locked to true"),
        ("GangScheduling=true", "GangScheduling is on but needs GenericWorkload, which is off"),
        ("wardle:A=true", 'unknown component "wardle" in "wardle:A=true": only kube has feature gates here'),
    ],
)
def test_faults_are_reported(text: str, expected: str) -> None:
    """Unknown gates, missing or wrong values, locked gates and unmet needs have a line each."""
    assert faults_of(text) == [expected]


def test_all_faults_are_reported_at_once() -> None:
    """Each fault has its line."""
    assert len(faults_of("Nope=true,SidecarContainers=false,GenericWorkload")) == 3


def test_locked_gates_may_be_set_to_their_default() -> None:
    """Any other value is a fault."""
    assert Features.parse("SidecarContainers=true") == Features()


def test_the_table_is_consistent() -> None:
    """Names are unique, needs exist, and the defaults meet the needs."""
    assert len(SCHEDULING_GATES) == len({gate.name for gate in SCHEDULING_GATES})
    assert {need for gate in GATES.values() for need in gate.needs} <= GATES.keys()
    assert {gate.stage for gate in GATES.values()} == {"ALPHA", "BETA", "GA", "DEPRECATED"}
    assert all(gate.default for gate in GATES.values() if gate.stage == "GA")
    assert not any(gate.default for gate in GATES.values() if gate.stage == "ALPHA")


def test_the_reference_page_is_current() -> None:
    """docs/reference/feature-gates.md equals the output of its script."""
    script = load_script("feature_gates_page")
    assert (ROOT / "docs/reference/feature-gates.md").read_text() == script.page()
