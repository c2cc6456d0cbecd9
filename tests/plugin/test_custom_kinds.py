"""Plugins watch kinds of their own: objects, indexes, events, and kinds that the API server does not serve."""

import dataclasses
from typing import Any

import pytest

from kubestow.api.custom_kinds import with_metadata
from kubestow.plugin import (
    SKIP,
    Action,
    CustomObject,
    Handle,
    ObjectMeta,
    PodInfo,
    PreFilter,
    PriorityClass,
    Registration,
    Rejection,
    Skip,
    custom_resource,
    on,
    unresolvable,
    unstructured,
    watch,
)
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.declarations import WatchError
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.scheduler.framework.registry import RegistryError, check_class
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod, offline_handle
from support.plugins.platform_plugins import ElasticQuota, QuotaGuard


def message(harness: SchedulerHarness, pod: str) -> str:
    return harness.cluster.conditions(pod)["PodScheduled"].message


def test_a_blocking_plugin_rejects_pods_while_its_kind_is_not_served() -> None:
    """Pods are retried when the kind is installed, and rejected again when it is removed."""
    with SchedulerHarness(plugins=[QuotaGuard]) as harness:
        harness.remove_crd(ElasticQuota)
        harness.cluster.add(make_node("n1", cpu=8))
        harness.cluster.add(make_pod("p1", cpu=1))
        harness.run_until_idle()
        assert "waiting for elasticquotas.scheduling.x-k8s.io: the API server does not have them" in message(
            harness, "p1"
        )
        harness.install_crd(ElasticQuota)
        harness.run_until_idle()
        assert harness.bindings == {"default/p1": "n1"}
        harness.remove_crd(ElasticQuota)
        harness.run_for(1)
        harness.cluster.add(make_pod("p2", cpu=1))
        harness.run_until_idle()
        assert harness.cluster.node_of("p2") == ""


def test_sums_of_pods_by_namespace_limit_a_quota() -> None:
    """Pods that are assumed count at once; a deleted pod makes room for another."""
    with SchedulerHarness(plugins=[QuotaGuard]) as harness:
        harness.cluster.add(make_node("n1", cpu=32))
        harness.cluster.add(make_object(ElasticQuota, "limit", spec={"max": {"cpu": 3}}))
        for number in range(5):
            harness.cluster.add(make_pod(f"p{number}", cpu=1))
        harness.cluster.add(make_pod("other", namespace="elsewhere", cpu=4))
        harness.run_until_idle()
        assert len(harness.bindings) == 4
        assert "max of ElasticQuota limit exceeded: cpu" in message(harness, "p4")
        harness.cluster.delete(harness.cluster.pod("p0"), grace_seconds=0)
        harness.run_until_idle()
        assert len(harness.bindings) == 5


@custom_resource("example.com/v1", "widgets")
@dataclasses.dataclass(frozen=True)
class Widget:
    metadata: ObjectMeta = dataclasses.field(default_factory=ObjectMeta)
    colour: str = ""


Gadget = unstructured("example.com/v1", "gadgets", "Gadget")


class ReadsBoth(PreFilter[None]):
    """Rejects pods unless a widget and a gadget have the same colour."""

    name = "ReadsBoth"
    watches = (Widget, Gadget, PriorityClass)

    def __init__(self, args: None, handle: Handle) -> None:
        self._widgets, self._gadgets = handle.objects(Widget), handle.objects(Gadget)
        self._classes = handle.objects(PriorityClass)

    def pre_filter(self, pod: PodInfo) -> Rejection | Skip:
        colours = {widget.colour for widget in self._widgets}
        found = [gadget for gadget in self._gadgets if gadget.get("spec.colours.0") in colours]
        high = self._classes.get("high")
        return SKIP if found and high is not None and high.value > 7 else unresolvable("no match")


def test_kinds_may_be_dataclasses_unstructured_or_built_in() -> None:
    """The default registrations of a plugin contain its own kinds."""
    with SchedulerHarness(plugins=[ReadsBoth]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p"))
        harness.cluster.add(make_object(Widget, "w", colour="red"))
        harness.cluster.add(make_object(PriorityClass, "high", value=8))
        harness.run_until_idle()
        assert message(harness, "p").startswith("0/1 nodes are available: no match")
        harness.cluster.add(make_object(Gadget, "g", spec={"colours": ["red", "blue"]}))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n1"}


def test_an_undeclared_kind_is_refused_with_the_line_that_reads_it() -> None:
    """The scheduler does not start."""

    class Forgets:
        name = "Forgets"

        def __init__(self, args: Any, handle: Handle) -> None:
            handle.objects(Widget)

        def pre_filter(self, pod: PodInfo) -> Any:
            return None

    with pytest.raises(
        ProfileError, match=r"Widget is not declared: add it to the `watches`.*test_custom_kinds\.py:\d+"
    ):
        SchedulerHarness(plugins=[Forgets])


def test_a_declaration_of_another_type_names_the_plugin() -> None:
    """A single kind instead of a tuple."""

    class Alone:
        name = "Alone"
        watches = Widget

        def __init__(self, args: Any, handle: Handle) -> None:
            pass

        def pre_filter(self, pod: PodInfo) -> Any:
            return None

    with pytest.raises(
        ProfileError, match="profile default-scheduler: plugin Alone: watches: must be a tuple of kinds"
    ):
        SchedulerHarness(plugins=[Alone])


def test_an_event_of_an_undeclared_kind_is_refused() -> None:
    """The registration would never match."""

    class Forgets:
        name = "Forgets"

        def __init__(self, args: Any, handle: Handle) -> None:
            pass

        def pre_filter(self, pod: PodInfo) -> Any:
            return None

        def requeue_on(self) -> list[Registration]:
            return [on(Widget, Action.ADD)]

    with pytest.raises(ProfileError, match="plugin Forgets: requeue_on names Widget: add it to `watches`"):
        SchedulerHarness(plugins=[Forgets])


def test_a_failing_callback_affects_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with the object, once for all objects; pods are scheduled."""

    class Fails:
        name = "Fails"
        watches = (Widget,)

        def __init__(self, args: Any, handle: Handle) -> None:
            widgets = handle.objects(Widget)
            widgets.on_change(lambda _key, _widget: int("none"))
            self._index = widgets.index_by(lambda widget: 1 // len(widget.colour))
            self._seen: list[str] = []
            widgets.on_change(lambda key, _widget: self._seen.append(key))

        def pre_filter(self, pod: PodInfo) -> Any:
            return (
                SKIP if self._seen == ["default/w", "default/x"] and not list(self._index) else unresolvable("not seen")
            )

    with SchedulerHarness(plugins=[Fails]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_object(Widget, "w"))
        harness.cluster.add(make_object(Widget, "x"))
        harness.cluster.add(make_pod("p"))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n1"}
    raised = [record.getMessage() for record in caplog.records if "Plugin raised" in record.getMessage()]
    assert len(raised) == 2
    assert all('object="default/w"' in line for line in raised)


def test_numbers_that_columns_cannot_hold_change_nothing() -> None:
    cluster = Cluster()
    cluster.set_node(make_node("n1"))
    columns = offline_handle(cluster).node_columns()
    columns.set("n1", {"value": 3})
    for wrong in (1 << 70, float("nan"), None):
        with pytest.raises(ValueError, match="a number of node n1 does not fit int64"):
            columns.set("n1", {"value": wrong})  # type: ignore[dict-item]
    assert columns.values_of("n1") == {"value": 3}


def test_objects_that_are_not_read_in_cycles_cannot_be_read_there() -> None:
    """Results of equal pods would depend on objects that the framework does not follow."""

    class Cheats:
        name = "Cheats"
        watches = (Widget,)

        def __init__(self, args: Any, handle: Handle) -> None:
            self._widgets = handle.objects(Widget, read_in_cycle=False)

        def filter(self, state: Any, pod: PodInfo, node: Any) -> Any:
            return None if self._widgets.get("w", "default") else "no widget"

    with SchedulerHarness(plugins=[Cheats]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p"))
        harness.run_for(1)
        assert "in spite of read_in_cycle=False" in message(harness, "p")


def test_an_index_of_pods_reports_the_keys_whose_pods_change() -> None:
    """Keys that have pods already are reported first; a pod that changes its key concerns both."""

    class Follows:
        name = "Follows"

        def __init__(self, args: Any, handle: Handle) -> None:
            pods = handle.pods.index_by(lambda pod: pod.labels.get("app"), read_in_cycle=False)
            pods.on_change(lambda key: seen.append((key, len(pods[key]))))

        def score(self, state: Any, pod: PodInfo, node: Any) -> int:
            return 0

    seen: list[tuple[str, int]] = []
    with SchedulerHarness(plugins=[Follows]) as harness:
        pod = harness.cluster.add(make_pod("p", labels={"app": "a"}, gates=["wait"]))
        harness.run_until_idle()
        harness.cluster.update(with_metadata(pod, labels={"app": "b"}))
        harness.run_until_idle()
        harness.cluster.delete(pod)
        harness.run_until_idle()
    assert list(dict.fromkeys(seen)) == [("a", 1), ("a", 0), ("b", 1), ("b", 0)]


def test_an_index_that_is_not_read_in_cycles_cannot_be_read_there() -> None:
    """Results of equal pods would depend on pods that the framework does not follow."""

    class Cheats:
        name = "Cheats"

        def __init__(self, args: Any, handle: Handle) -> None:
            self._pods = handle.pods.index_by(lambda pod: pod.namespace, read_in_cycle=False)

        def filter(self, state: Any, pod: PodInfo, node: Any) -> Any:
            return None if self._pods["default"] else "no pod"

    with SchedulerHarness(plugins=[Cheats]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p"))
        harness.run_for(1)
        assert "in spite of read_in_cycle=False" in message(harness, "p")


def test_two_classes_may_stand_for_one_resource() -> None:
    """A hint gets objects of its own class only."""

    @custom_resource("example.com/v1", "widgets")
    class Other(CustomObject, frozen=True):
        size: int = 0

    seen: list[Any] = []

    class Asks:
        watches = (Other,)
        name = "Asks"

        def __init__(self, args: Any, handle: Handle) -> None:
            pass

        def pre_filter(self, pod: PodInfo) -> Any:
            return unresolvable("never")

        def requeue_on(self) -> list[Registration]:
            return [on(Other, Action.ADD, self._hint)]

        def _hint(self, pod: Any, old: Other | None, new: Other | None) -> bool:
            seen.append(new)
            return False

    with SchedulerHarness(plugins=[Asks]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p"))
        harness.run_until_idle()
        harness.cluster.add(make_object(Widget, "w"))
        harness.cluster.add(make_object(Other, "o", size=3))
        harness.run_until_idle()
        assert [other.size for other in seen] == [3]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: custom_resource("v1/a/b", "widgets"), "must be group/version"),
        (lambda: custom_resource("example.com/v1", "Widgets"), "must be the plural name in lower case"),
        (lambda: custom_resource("example.com/v1", "widgets")(dict), "class dict must be a Struct or a dataclass"),
        (lambda: watch(int), "int is not watched; declare the kind with @custom_resource"),
        (lambda: watch(PodInfo), "PodInfo is not watched"),
        (lambda: watch(Widget, writes=("labels",)), "writes must be of status, annotations, spec, not 'labels'"),  # type: ignore[arg-type]
        (lambda: watch(Widget, when_unavailable="stop"), "must be ignore or block, not 'stop'"),  # type: ignore[arg-type]
        (lambda: on(int, Action.ADD), "there are no events of int"),
    ],
)
def test_declarations_that_cannot_work_are_refused(declare: Any, words: str) -> None:
    """The message names the class and what to do."""
    with pytest.raises((TypeError, ValueError, WatchError), match=words):
        declare()


def test_a_plugin_that_lacks_a_method_of_its_base_class_is_refused() -> None:
    """The base classes are checked by the loader, not only by type checkers."""

    class Lacks(PreFilter[None]):
        name = "Lacks"

        def __init__(self, args: Any, handle: Handle) -> None:
            pass

    with pytest.raises(RegistryError, match="plugin Lacks lacks pre_filter, which its base classes announce"):
        check_class(Lacks)
