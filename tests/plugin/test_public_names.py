"""The public API for plugins is small, and changes only on purpose."""

import kubestow.plugin
import kubestow.plugin.fast
import kubestow.testing


def test_names_for_every_plugin() -> None:
    """A plugin needs no other import."""
    assert sorted(kubestow.plugin.__all__) == [
        "Action",
        "Bind",
        "Candidates",
        "Code",
        "CustomObject",
        "FailedEvaluation",
        "Filter",
        "GroupVictims",
        "Handle",
        "Index",
        "MAX_SCORE",
        "Narrowed",
        "Node",
        "NodeRow",
        "ObjectMeta",
        "Objects",
        "Permit",
        "PlacedPods",
        "Placement",
        "PluginError",
        "Pod",
        "PodIndex",
        "PodInfo",
        "PolledValue",
        "PostBind",
        "PostFilter",
        "PostFilterResult",
        "PreBind",
        "PreEnqueue",
        "PreFilter",
        "Preemption",
        "PriorityClass",
        "QueueSort",
        "RawQuantity",
        "Registration",
        "Rejection",
        "Requeues",
        "Reserve",
        "Resource",
        "SKIP",
        "Score",
        "Skip",
        "Timer",
        "TriedGroup",
        "VictimUnit",
        "Wait",
        "WaitingPod",
        "custom_resource",
        "format_quantities",
        "not_a_hook",
        "on",
        "parse_quantities",
        "unresolvable",
        "unschedulable",
        "unstructured",
        "watch",
    ]


def test_names_for_fast_plugins() -> None:
    """Names that only improve performance are separate."""
    assert sorted(kubestow.plugin.fast.__all__) == [
        "BoolArray",
        "Change",
        "FilterRows",
        "FloatArray",
        "IntArray",
        "NodeColumns",
        "NodeView",
        "NormalizeScore",
        "PodsRead",
        "PreScore",
        "Rejections",
        "Rows",
        "RowsOfPods",
        "ScoreRows",
        "Signs",
    ]


def test_names_for_testing_plugins() -> None:
    """These names suffice to test a plugin without a cluster."""
    assert sorted(kubestow.testing.__all__) == [
        "Binding",
        "EventLog",
        "FakeCluster",
        "Faults",
        "RecordedEvent",
        "SchedulerHarness",
        "StuckError",
        "VirtualLoop",
        "check_forms",
        "make_composite_pod_group",
        "make_node",
        "make_object",
        "make_pod",
        "make_pod_group",
        "offline_handle",
    ]


def test_all_names_exist() -> None:
    """Including those that are imported on first access."""
    for module in (kubestow.plugin, kubestow.plugin.fast, kubestow.testing):
        for name in module.__all__:
            assert getattr(module, name) is not None
