"""Strict decoding: the contents of a file, and the message of each fault."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow import config
from kubestow.config import ConfigError
from kubestow.config.configuration import Plugins, SchedulerConfiguration
from kubestow.config.plugin_args import ARGS_OF_PLUGIN, NodeResourcesFitArgs
from kubestow.config.plugin_points import IN_TREE

A_DURATION = "must be a duration such as 10s or 1m30s"
NO_DURATION = "is not a duration; write for example 10s, 1m30s or 500ms"
BASE64 = "must be base64 text"
ARGS = "profiles[0].pluginConfig[0].args"
WANTED = "apiVersion must be kubescheduler.config.k8s.io/v1"
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def problems_of(fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config.load(json.dumps(HEAD | fields))
    return [str(problem) for problem in caught.value.problems]


def with_args(plugin: str, args: Any) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "must be a KubeSchedulerConfiguration, not empty"),
        ("- a\n", "must be a KubeSchedulerConfiguration, not a list"),
        ("hello\n", 'must be a KubeSchedulerConfiguration, not the string "hello"'),
        ("kind: KubeSchedulerConfiguration\n", "apiVersion: is missing; it must be kubescheduler.config.k8s.io/v1"),
        ("apiVersion: kubescheduler.config.k8s.io/v1\n", "kind: is missing; it must be KubeSchedulerConfiguration"),
        (
            "apiVersion: example.com/v1beta3\nkind: KubeSchedulerConfiguration\nnope: 1\n",
            f'apiVersion: no kind "KubeSchedulerConfiguration" is known in version "example.com/v1beta3"; {WANTED}',
        ),
    ],
)
def test_only_the_known_kind_is_accepted(text: str, expected: str) -> None:
    """The message for any other kind or version names the accepted one; fields are not decoded."""
    with pytest.raises(ConfigError) as caught:
        config.load(text)
    assert [str(problem) for problem in caught.value.problems] == [expected]


def test_unknown_fields_are_reported_with_their_paths() -> None:
    """Every unknown field at any depth is a problem; names are case-sensitive."""
    fields = {
        "Parallelism": 1,
        "leaderElection": {"lease": "1s"},
        "profiles": [{"plugins": {"score": {"enabled": [{"nam": "x"}]}, "scoring": {}}}],
        "extenders": [{"tlsConfig": {"cert": ""}}],
    }
    assert problems_of(fields) == [
        "Parallelism: is not a known field",
        "leaderElection.lease: is not a known field",
        "profiles[0].plugins.score.enabled[0].nam: is not a known field",
        "profiles[0].plugins.scoring: is not a known field",
        "extenders[0].tlsConfig.cert: is not a known field",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"parallelism": "abc"}, 'parallelism: must be an integer, not the string "abc"'),
        ({"parallelism": 1.0}, "parallelism: must be an integer, not 1.0"),
        ({"parallelism": True}, "parallelism: must be an integer, not true"),
        ({"parallelism": 2**31}, "parallelism: must be an integer of 32 bits, not 2147483648"),
        ({"podMaxBackoffSeconds": 2**63}, f"podMaxBackoffSeconds: must be an integer of 64 bits, not {2**63}"),
        ({"enableProfiling": "true"}, 'enableProfiling: must be true or false, not the string "true"'),
        ({"profiles": {}}, "profiles: must be a list, not a mapping"),
        ({"profiles": "x"}, 'profiles: must be a list, not the string "x"'),
        ({"profiles": [1]}, "profiles[0]: must be a mapping, not 1"),
        ({"profiles": [{"schedulerName": 123}]}, "profiles[0].schedulerName: must be a string, not 123"),
        ({"leaderElection": []}, "leaderElection: must be a mapping, not a list"),
        ({"leaderElection": {"leaseDuration": 15}}, f"leaderElection.leaseDuration: {A_DURATION}, not 15"),
        ({"leaderElection": {"leaseDuration": None}}, f"leaderElection.leaseDuration: {A_DURATION}, not empty"),
        ({"leaderElection": {"retryPeriod": "2"}}, f'leaderElection.retryPeriod: "2" {NO_DURATION}'),
        ({"clientConnection": {"qps": "50"}}, 'clientConnection.qps: must be a number, not the string "50"'),
        ({"clientConnection": {"qps": 1e39}}, "clientConnection.qps: must be a number of 32 bits, not 1e+39"),
        (
            {"extenders": [{"tlsConfig": {"caData": "%"}}]},
            f'extenders[0].tlsConfig.caData: {BASE64}, not the string "%"',
        ),
        (with_args("NodeResourcesFit", {"nope": 1}), "profiles[0].pluginConfig[0].args.nope: is not a known field"),
        (with_args("NodeResourcesFit", "x"), 'profiles[0].pluginConfig[0].args: must be a mapping, not the string "x"'),
        (
            with_args("NodeResourcesFit", {"kind": "Other"}),
            f'{ARGS}.kind: must be NodeResourcesFitArgs for plugin NodeResourcesFit, not the string "Other"',
        ),
        (
            with_args("PodTopologySpread", {"defaultConstraints": [{"labelSelector": {"matchLabels": {"a": 1}}}]}),
            f"{ARGS}.defaultConstraints[0].labelSelector.matchLabels.a: must be a string, not 1",
        ),
    ],
)
def test_wrong_types_are_reported_with_path_and_value(fields: Any, expected: str) -> None:
    """The message about a value of the wrong type or width names the expected type."""
    assert problems_of(fields)[0] == expected


def test_null_means_absent() -> None:
    """A null field has its default, for every type."""
    fields = {
        "parallelism": None,
        "profiles": None,
        "leaderElection": None,
        "extenders": None,
        "delayCacheUntilActive": None,
    }
    assert config.load(json.dumps(HEAD | fields)) == config.default()
    assert config.load(json.dumps(HEAD | {"profiles": [None]})) == config.default()
    assert config.load(json.dumps(HEAD | with_args("NodeResourcesFit", None))) == config.default()


def test_null_in_a_list_is_an_empty_value() -> None:
    """A null plugin is one without a name, which does not exist."""
    fields = {"profiles": [{"plugins": {"filter": {"enabled": [None]}}}]}
    (problem,) = problems_of(fields)
    assert problem.startswith(
        'profiles[0].plugins.filter.enabled[0]: plugin "" does not exist. There are: DefaultBinder'
    )


def test_args_may_name_their_kind() -> None:
    """apiVersion and kind in args are accepted if they are right."""
    args = {"apiVersion": HEAD["apiVersion"], "kind": "NodeResourcesFitArgs", "ignoredResourceGroups": ["example.com"]}
    loaded = config.load(json.dumps(HEAD | with_args("NodeResourcesFit", args)))
    assert loaded.profiles[0].args_of("NodeResourcesFit") == NodeResourcesFitArgs(
        ignoredResourceGroups=("example.com",)
    )


def test_args_of_other_plugins_are_unchanged() -> None:
    """Arguments of a plugin that is not in-tree are kept as a tree if the plugin exists and is enabled."""
    args = {"anything": ["goes", {"deep": None}]}
    fields = {
        "profiles": [{"plugins": {"score": {"enabled": [{"name": "Mine"}]}}, **with_args("Mine", args)["profiles"][0]}]
    }
    loaded = config.load(json.dumps(HEAD | fields), known={**IN_TREE, "Mine": frozenset({"score"})})
    assert loaded.profiles[0].args_of("Mine") == args


def test_single_precision_numbers_keep_their_shortest_form() -> None:
    """qps has 32 bits: digits beyond their precision are dropped, others are kept."""
    loaded = config.load(json.dumps(HEAD | {"clientConnection": {"qps": 0.123456789123}}))
    assert loaded.clientConnection.qps == pytest.approx(0.123456789123, rel=1e-7)
    assert config.load(json.dumps(HEAD | {"clientConnection": {"qps": 0.1}})).clientConnection.qps == 0.1
    assert len(str(loaded.clientConnection.qps)) <= len("0.123456789")


NAMES = st.sampled_from(
    [
        *SchedulerConfiguration.__struct_fields__,
        *Plugins.__struct_fields__,
        *(field for args in ARGS_OF_PLUGIN.values() for field in args.__struct_fields__),
        *[
            "apiVersion",
            "kind",
            "name",
            "enabled",
            "args",
            "schedulerName",
            "pluginConfig",
            "plugins",
            "weight",
            "tlsConfig",
        ],
    ]
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*ARGS_OF_PLUGIN, "*", "1s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=6))
def test_any_tree_is_a_configuration_or_an_error(tree: dict[str, Any]) -> None:
    """Any fields are loaded as a configuration, which round-trips, or the problems are reported."""
    try:
        loaded = config.load(json.dumps(tree | HEAD))
    except ConfigError as error:
        lines = [str(problem) for problem in error.problems]
    else:
        lines = [] if config.load(config.dump(loaded)) == loaded else ["reads back differently\n"]
    assert all("\n" not in line for line in lines)


def test_a_problem_is_one_line() -> None:
    """Names from the file cannot break the line of a problem."""
    assert problems_of({"a\nb": 1}) == ["a\\nb: is not a known field"]


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    """No text crashes the loader."""
    with pytest.raises(ConfigError):
        config.load(text)
