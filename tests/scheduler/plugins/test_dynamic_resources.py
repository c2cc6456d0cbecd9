"""DynamicResources: reasons of rejections, PostFilter, scores and hints."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from kubestow.config.durations import Duration
from kubestow.config.features import Features
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.framework.results import SKIP, Code, FilterError
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.dynamic_resources import DynamicResources
from kubestow.testing import make_node, make_pod
from support.plugins.device_world import (
    DRIVER,
    allocated,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    either,
    exactly,
    gpus,
    option,
    taint_rule,
)
from support.plugins.plugin_calls import hint, rejected, scores
from support.scheduler.troupe import evaluation_of, nodes

BROKEN = "device.attributes['gpu.example.com'].nothing == 1"
NOT_BOOLEAN = "device.attributes['gpu.example.com'].?nothing.orValue('text')"


def plugin_and_cluster(
    *objects: Any, features: Features | None = None, args: DynamicResourcesArgs | None = None, **parts: Any
) -> Any:
    """Return a plugin on a cluster of these objects; by default node `n` with two devices and class `gpu`."""
    cluster = Cluster(features)
    defaults = [make_node("n"), device_class(), device_slice("n", gpus(2))]
    for thing in [*(() if objects and objects[0] is None else defaults), *objects]:
        if thing is None:
            continue
        (cluster.set_node if hasattr(thing, "status") and hasattr(thing.status, "allocatable") else cluster.set_object)(
            thing
        )
    handle = offline_handle(cluster, features, **parts)
    return DynamicResources(args or DynamicResourcesArgs(), handle), cluster


def why(plugin: Any, cluster: Cluster, pod: Any) -> str:
    """Return the reason for rejecting node `n`, or the pod as a whole."""
    answer = rejected(plugin, cluster, pod)
    return next((rejection.message for rejection in answer.values()), "")


def test_pods_without_claims_are_skipped() -> None:
    """They are not filtered, have a signature, and every node scores 0."""
    plugin, cluster = plugin_and_cluster()
    assert plugin.pre_filter(PodInfo(make_pod("p"))) is SKIP
    assert plugin.sign(PodInfo(make_pod("p"))) == ""
    assert plugin.pre_enqueue(make_pod("p")) is None
    assert scores(plugin, cluster, make_pod("p")) == {"n": 0}


def test_pods_with_claims_have_no_signature() -> None:
    """The result for a row depends on more than the pod and the row."""
    plugin, _ = plugin_and_cluster(claim("c"))
    assert plugin.sign(PodInfo(claiming("p", "c"))) is None


TEMPLATE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        (claiming("p", "c"), [], 'could not find ResourceClaim "default/c"'),
        (make_pod("p", spec=TEMPLATE), [], 'pod "default/p": ResourceClaim not created yet'),
        (
            make_pod("p", spec={"resourceClaims": [{"name": "gpu"}]}),
            [],
            'pod "default/p", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
        (
            make_pod("p", spec=TEMPLATE, status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}),
            [claim("c")],
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        (
            claiming("p", "c"),
            [convert(ResourceClaim, {"metadata": {"name": "c", "namespace": "default", "deletionTimestamp": "x"}})],
            'resourceclaim "c" is being deleted',
        ),
    ],
)
def test_unusable_claims_reject_the_pod(pod: Any, objects: list[Any], reason: str) -> None:
    """PreEnqueue keeps the pod out of the queue, and PreFilter rejects it."""
    plugin, cluster = plugin_and_cluster(*objects)
    kept_out = plugin.pre_enqueue(pod)
    assert (kept_out.code, kept_out.message) == (Code.UNRESOLVABLE, reason)
    assert rejected(plugin, cluster, pod)[""] == kept_out


def test_a_template_that_needs_no_claim() -> None:
    """A status without a claim name means that no claim is needed."""
    plugin, _ = plugin_and_cluster()
    pod = make_pod("p", spec=TEMPLATE, status={"resourceClaimStatuses": [{"name": "gpu"}]})
    assert plugin.pre_enqueue(pod) is None
    assert plugin.pre_filter(PodInfo(pod)) is SKIP


@pytest.mark.parametrize(
    ("requested", "features", "reason"),
    [
        (exactly(of="none"), {}, "request r: device class none does not exist"),
        (either(option("o", of="none")), {}, "request r/o: device class none does not exist"),
        ({"name": "r"}, {}, "resource claim default/c, request r: unknown request type"),
        (
            either(option("o")),
            {"dra_prioritized_list": False},
            "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled",
        ),
    ],
)
def test_infeasible_requests_reject_the_pod(requested: Any, features: dict[str, Any], reason: str) -> None:
    """PreFilter rejects the pod as a whole."""
    plugin, cluster = plugin_and_cluster(claim("c", requested), features=Features(**features))
    answer = rejected(plugin, cluster, claiming("p", "c"))[""]
    assert (answer.code, answer.message) == (Code.UNRESOLVABLE, reason)


def test_a_request_without_a_class_is_an_error() -> None:
    """The API server does not allow such a request."""
    plugin, _ = plugin_and_cluster(claim("c", exactly(of="")))
    with pytest.raises(ValueError, match="request r: unsupported request type"):
        plugin.pre_filter(PodInfo(claiming("p", "c")))


SELECTOR = {"cel": {"expression": "true"}}
INVALID = [device("gpu-0"), device("gpu-0")]


@pytest.mark.parametrize(
    ("objects", "claimed", "reason"),
    [
        ([], claim("c", exactly(3)), "cannot allocate all claims"),
        ([], claim("c", exactly(33)), "claim default/c: number of requested devices 33 exceeds the claim limit of 32"),
        ([], claim("c", exactly(1, "nonsense(")), "claim default/c: selector #0: CEL compile error: "),
        (
            [],
            claim("c", exactly(1, "true", BROKEN)),
            (
                f"claim default/c: selector #1 on device {DRIVER}/n/gpu-0: CEL runtime error: no such key: nothing. "
                "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for "
                "optional fields"
            ),
        ),
        (
            [device_class("odd", NOT_BOOLEAN)],
            claim("c", exactly(of="odd")),
            (
                f"class odd: selector #0 on device {DRIVER}/n/gpu-0: CEL runtime error: CEL result of type string "
                "could not be converted to bool: unsupported native conversion from string to 'bool'"
            ),
        ),
        (
            [],
            claim("c", exactly(selectors=[{}])),
            "claim default/c, request r, selector #0: CEL expression empty (unsupported selector type?)",
        ),
        (
            [],
            claim("c", exactly(allocationMode="Most")),
            "claim default/c, request r: unsupported count mode Most",
        ),
        (
            [],
            claim("c", exactly(), constraints=[{}]),
            "claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
        ),
        (
            [],
            claim("c", exactly(0), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
            (
                f"claim default/c, request r: cannot add device {DRIVER}/n/gpu-0 "
                "because a claim constraint would not be satisfied"
            ),
        ),
        ([device_slice("n", INVALID, pool="bad")], claim("c", exactly(3)), "invalid resource pools were encountered"),
        (
            [device_slice("n", INVALID, pool="bad")],
            claim("c", exactly(0)),
            f"claim default/c, request r: asks for all devices, but resource pool {DRIVER}/bad is currently invalid",
        ),
        (
            [device_slice("n", gpus(1), pool="half", slices=2)],
            claim("c", exactly(0)),
            (
                f"claim default/c, request r: asks for all devices, but resource pool {DRIVER}/half is currently being "
                "updated"
            ),
        ),
        (
            [device_slice("n", gpus(1), pool="z", slices=2)],
            claim("c", exactly(0, BROKEN)),
            f"claim default/c: selector #0 on device {DRIVER}/n/gpu-0: CEL runtime error: ",
        ),
        ([], allocated("c", "elsewhere", "gpu-0"), "resourceclaim not available on the node"),
    ],
)
def test_reasons_of_the_filter(objects: list[Any], claimed: ResourceClaim, reason: str) -> None:
    """An infeasible node is rejected; an invalid claim or class is an error."""
    plugin, cluster = plugin_and_cluster(*objects, claimed)
    answer = rejected(plugin, cluster, claiming("p", "c"))["n"]
    is_error = answer.message.startswith('running "DynamicResources" filter plugin: ')
    assert answer.code is (Code.ERROR if is_error else Code.UNRESOLVABLE)
    assert answer.message.removeprefix('running "DynamicResources" filter plugin: ').startswith(reason)


def test_stored_expressions_need_no_gates() -> None:
    """The API server checks gates when an expression is written; afterwards it can be evaluated."""
    listing = device("gpu-0", allowMultipleAllocations=True, attributes={"roots": {"strings": ["a", "b"]}})
    requested = exactly(1, f'device.attributes["{DRIVER}"].roots.includes("b") && device.allowMultipleAllocations')
    features = Features(dra_consumable_capacity=False)
    plugin, cluster = plugin_and_cluster(device_slice("n", [listing]), claim("c", requested), features=features)
    assert rejected(plugin, cluster, claiming("p", "c")) == {}


def test_capacity_requests_require_their_gate() -> None:
    """Without the gate, a capacity request is an error."""
    features = Features(dra_consumable_capacity=False)
    sized: dict[str, Any] = {"capacity": {"requests": {"memory": "1Gi"}}}
    plugin, cluster = plugin_and_cluster(
        claim("c", exactly(**sized)), claim("d", either(option("o", **sized))), features=features
    )
    problem = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    assert why(plugin, cluster, claiming("p", "c")).endswith(f"claim default/c, request r: {problem}")
    assert why(plugin, cluster, claiming("p", "d")).endswith(f"claim default/d, subrequest o: {problem}")


def test_distinct_attributes_require_one_of_two_gates() -> None:
    """With shares or binding conditions, kube-scheduler uses an allocator that supports them."""
    wanted = claim("c", exactly(1), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    shares_off = Features(dra_consumable_capacity=False)
    both_off = Features(dra_consumable_capacity=False, dra_device_binding_conditions=False)
    plugin, cluster = plugin_and_cluster(wanted, features=shares_off)
    assert why(plugin, cluster, claiming("p", "c")) == "cannot allocate all claims"
    plugin, cluster = plugin_and_cluster(wanted, features=both_off)
    assert "constraint #0: empty constraint" in why(plugin, cluster, claiming("p", "c"))


@pytest.mark.parametrize("kind", [ResourceClaim, ResourceSlice, DeviceClass])
def test_unreadable_resources_reject_pods_with_claims(kind: type) -> None:
    """If the API server does not serve claims, classes or slices, PreFilter rejects the pod with the reason."""
    plugin, cluster = plugin_and_cluster(claim("c"))
    cluster.set_unreadable(kind, "the server has no resource.k8s.io/v1")
    reason = "pod claims devices, which the scheduler cannot see: the server has no resource.k8s.io/v1"
    assert plugin.pre_enqueue(claiming("p", "c")) is None
    assert rejected(plugin, cluster, claiming("p", "c"))[""].message == reason
    assert plugin.pre_enqueue(make_pod("p")) is None


def test_errors_end_a_cycle() -> None:
    """A node whose devices cannot be evaluated fails the attempt, even if other nodes are feasible."""
    plugin, cluster = plugin_and_cluster(claim("c", exactly(1, BROKEN)))
    evaluation = evaluation_of(cluster, plugin)
    evaluation.pod = PodInfo(claiming("p", "c"))
    assert evaluation.pre_filter()
    with pytest.raises(FilterError, match='running "DynamicResources" filter plugin: claim default/c: selector #0'):
        evaluation.passing(evaluation.cluster.order.rows())
    evaluation.filter()
    assert not evaluation.rejecting_plugins


class TickingClock:
    """A clock that advances with each reading."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        self.seconds += 1.0
        return self.seconds


def test_search_timeout() -> None:
    """The attempt fails after the filter timeout with a message that names the node."""
    many = [
        device(f"d{number}", consumesCounters=[{"counterSet": "s", "counters": {"u": {"value": str(20 + number)}}}])
        for number in range(24)
    ]
    counters: dict[str, Any] = {"sharedCounters": [{"name": "s", "counters": {"u": {"value": "300"}}}]}
    wanted = claim("c", exactly(12))
    args = DynamicResourcesArgs(filterTimeout=Duration(10 * 10**9))
    slices = [device_slice("n", many, name="a", slices=2), device_slice("n", name="b", slices=2, **counters)]
    objects = [None, make_node("n"), device_class(), *slices, wanted]
    plugin, cluster = plugin_and_cluster(*objects, args=args, clock=TickingClock())
    with pytest.raises(FilterError, match="node n: timed out trying to allocate devices"):
        rejected(plugin, cluster, claiming("p", "c"))


def test_what_if_views_use_the_devices_of_the_cluster() -> None:
    """Copied rows are evaluated with the devices of their original nodes."""
    plugin, cluster = plugin_and_cluster(make_node("bare"), claim("c"))
    info = PodInfo(claiming("p", "c"))
    state, rows = plugin.pre_filter(info), [cluster.nodes.row_of[name] for name in ("bare", "n")]
    answer = plugin.filter_rows(state, info, what_if(cluster.nodes, rows), slice(0, 2))
    assert (answer.kinds != 0).tolist() == [True, False]


HALF = f"device.attributes['{DRIVER}'].numa == 0"


@pytest.mark.parametrize(
    "requested",
    [
        claim("c", exactly(11), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
        claim("c", exactly(2, HALF), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}]),
        claim("c", *(exactly(10, name=name) for name in "abc"), exactly(1, name="d")),
        claim("c", exactly(31)),
    ],
)
def test_infeasible_searches_end_early(requested: ResourceClaim) -> None:
    """Thirty distinct devices have billions of combinations, which are not tried if there are too few devices."""
    many = [device(f"d{number}", serial=number, numa=number // 10) for number in range(30)]
    objects = [None, make_node("n"), device_class(), device_slice("n", many), requested]
    plugin, cluster = plugin_and_cluster(
        *objects, args=DynamicResourcesArgs(filterTimeout=Duration(10**9)), clock=TickingClock()
    )
    assert why(plugin, cluster, claiming("p", "c")) == "cannot allocate all claims"


def test_filter_without_pre_filter_is_an_error() -> None:
    """A configuration that enables Filter without PreFilter gets an error."""
    plugin, cluster = plugin_and_cluster()
    with pytest.raises(ValueError, match="cannot filter without its PreFilter"):
        plugin.filter_rows(None, PodInfo(make_pod("p")), cluster.nodes, cluster.order.rows())


# PostFilter


def post_filter(plugin: Any, cluster: Any, pod: Any) -> tuple[Code, str]:
    evaluation: Any = evaluation_of(cluster, plugin)
    evaluation.pod = PodInfo(pod)
    if evaluation.pre_filter():
        evaluation.filter()
    result = plugin.post_filter(evaluation.pod, evaluation)
    return result.code, result.message


def test_post_filter_without_allocated_claims() -> None:
    """A pod without claims, or one rejected as a whole, has nothing to deallocate."""
    plugin, cluster = plugin_and_cluster(claim("c", exactly(of="none")))
    nothing = (Code.UNSCHEDULABLE, "")
    assert post_filter(plugin, cluster, make_pod("p")) == nothing
    assert post_filter(plugin, cluster, claiming("p", "c")) == nothing
    assert post_filter(plugin, cluster, claiming("p", "unknown")) == nothing


def test_post_filter_without_pre_filter_is_an_error() -> None:
    """If another plugin rejected the pod first, the state of PreFilter is missing."""
    plugin, _ = plugin_and_cluster()
    evaluation: Any = evaluation_of(nodes(1), plugin)
    result = plugin.post_filter(evaluation.pod, evaluation)
    assert (result.code, result.message) == (Code.ERROR, "not found")


def test_post_filter_with_too_few_devices() -> None:
    """There are too few devices, so that deallocation does not help."""
    plugin, cluster = plugin_and_cluster(claim("c", exactly(3)))
    assert post_filter(plugin, cluster, claiming("p", "c")) == (Code.UNSCHEDULABLE, "")


# Scores


def test_better_options_score_higher() -> None:
    """Each list scores by the rank of its chosen alternative; the best node gets 100."""
    first, second = (option(f"o{number}", number + 1) for number in (1, 0))
    plugin, cluster = plugin_and_cluster(
        make_node("small"), device_slice("small", gpus(1)), claim("c", either(first, second)), claim("d", exactly())
    )
    pod = claiming("p", "c")
    assert rejected(plugin, cluster, pod) == {}
    info = PodInfo(pod)
    state = plugin.pre_filter(info)
    rows = cluster.order.rows()
    raw = plugin.score_rows(state, info, cluster.nodes, rows)
    found = plugin.normalize(state, info, cluster.nodes, rows, raw)
    assert dict(zip([cluster.nodes.names[row] for row in rows], raw.tolist(), strict=True)) == {"n": 8, "small": 7}
    assert dict(zip([cluster.nodes.names[row] for row in rows], found.tolist(), strict=True)) == {"n": 100, "small": 87}
    assert scores(plugin, cluster, claiming("q", "d")) == {"n": 0, "small": 0}


# Hints


def test_claim_events_that_requeue() -> None:
    """The pod's own claims on creation and status changes; any claim when it is deallocated or deleted."""
    plugin, _ = plugin_and_cluster(claim("c"))
    pod = claiming("p", "c")
    assert hint(plugin, pod, None, claim("c")) is True
    assert hint(plugin, pod, claim("c"), claim("c")) is False
    assert hint(plugin, pod, claim("c"), allocated("c", "n", "gpu-0")) is True
    assert hint(plugin, pod, None, claim("other")) is False
    assert hint(plugin, pod, claim("other"), allocated("other", "n", "gpu-0")) is False
    assert hint(plugin, pod, allocated("other", "n", "gpu-0"), claim("other")) is True
    assert hint(plugin, claiming("q", "missing"), allocated("other", "n", "gpu-0"), claim("other")) is False
    assert hint(plugin, pod, allocated("other", "n", "gpu-0"), None) is True
    assert hint(plugin, pod, claim("other"), None) is False


def test_other_events_that_requeue() -> None:
    """Classes and slices always; the pod's own status when it names all claims."""
    plugin, _ = plugin_and_cluster(claim("c"))
    pod = claiming("p", "c")
    assert hint(plugin, pod, None, device_class()) is True
    assert hint(plugin, pod, device_slice("n"), device_slice("n", gpus(1))) is True
    assert hint(plugin, pod, taint_rule("t", "k:NoSchedule"), None) is True
    named = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
    before, after = make_pod("p", spec=TEMPLATE), make_pod("p", spec=TEMPLATE, status=named)
    assert hint(plugin, before, before, after) is False
    skipped = make_pod("p", spec=TEMPLATE, status={"resourceClaimStatuses": [{"name": "gpu"}]})
    assert hint(plugin, before, before, skipped) is True
    assert hint(plugin, make_pod("q"), before, skipped) is None
