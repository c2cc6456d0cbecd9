"""Writing of a configuration."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow import config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def written(fields: str) -> Any:
    return yaml.safe_load(config.dump(config.load(HEAD + fields)))


def args(plugin: str, given_args: str) -> Any:
    profile = written(f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {given_args}}}]}}]")["profiles"][0]
    return next(entry["args"] for entry in profile["pluginConfig"] if entry["name"] == plugin)


def test_the_same_empty_fields_are_omitted_as_by_kube_scheduler() -> None:
    """Zero weights and empty sets are written, absent extenders and unset flags are not."""
    default = written("")
    assert "extenders" not in default
    assert "delayCacheUntilActive" not in default
    assert default["percentageOfNodesToScore"] == 0
    assert default["clientConnection"]["kubeconfig"] == ""
    assert "percentageOfNodesToScore" not in default["profiles"][0]
    plugins = default["profiles"][0]["plugins"]
    assert plugins["filter"] == {}
    assert plugins["multiPoint"]["enabled"][0] == {"name": "SchedulingGates", "weight": 0}


def test_false_and_zero_that_matter_are_written() -> None:
    """A field that was turned off or set to zero is visible."""
    off = written("enableProfiling: false\nleaderElection: {leaderElect: false}")
    assert off["enableProfiling"] is False
    assert off["enableContentionProfiling"] is False
    assert off["leaderElection"]["leaderElect"] is False
    assert args("InterPodAffinity", "{hardPodAffinityWeight: 0}")["hardPodAffinityWeight"] == 0
    assert args("VolumeBinding", "{bindTimeoutSeconds: 0}")["bindTimeoutSeconds"] == 0


def test_arguments_have_their_kind() -> None:
    """Typed arguments have version and kind, as from kube-scheduler."""
    preferred = "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0}]}}"
    assert args("NodeAffinity", preferred) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeAffinityArgs",
        "addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]},
    }


def test_an_unset_filter_timeout_is_null() -> None:
    """It is the only field that is written as null."""
    features = config.Features.parse("DRASchedulerFilterTimeout=false")
    text = config.dump(config.load(HEAD, features))
    assert "filterTimeout: null" in text


def test_extenders_are_written() -> None:
    """Durations, base64 data and resources of extenders round-trip."""
    tls_and_resources = "tlsConfig: {caData: 'YWI='}, managedResources: [{name: a.b/c}]"
    fields = f"extenders: [{{urlPrefix: 'http://a', httpTimeout: 90s, {tls_and_resources}}}]"
    assert written(fields)["extenders"] == [
        {
            "urlPrefix": "http://a",
            "httpTimeout": "1m30s",
            "tlsConfig": {"caData": "YWI="},
            "managedResources": [{"name": "a.b/c"}],
        }
    ]


@pytest.mark.parametrize(("qps", "text"), [("100", "qps: 100\n"), ("0.1", "qps: 0.1\n"), ("2.5", "qps: 2.5\n")])
def test_rates_are_written_short(qps: str, text: str) -> None:
    """An integral rate is written without a decimal point."""
    assert text in config.dump(config.load(HEAD + f"clientConnection: {{qps: {qps}}}"))


@settings(deadline=None)
@given(
    st.text(min_size=1)
    | st.sampled_from(["y", "no", "1e3", "017", "1:30", "~", "null", "0x1", "2001-01-01", "<<", "="])
)
def test_ambiguous_text_is_quoted(name: str) -> None:
    """Names that YAML would read as a number or a boolean are quoted, for every reader."""
    completed = config.default()
    profile = completed.profiles[0]
    renamed = msgspec.structs.replace(completed, profiles=(msgspec.structs.replace(profile, schedulerName=name),))
    text = config.dump(renamed)
    assert config.load(text) == renamed
    assert yaml.safe_load(text)["profiles"][0]["schedulerName"] == name


def test_repeated_values_are_written_out() -> None:
    """No anchors or aliases are written, even if a value is repeated."""
    text = config.dump(config.load(HEAD + "profiles: [{schedulerName: a}, {schedulerName: b}]"))
    assert "&" not in text
    assert "*" not in text
