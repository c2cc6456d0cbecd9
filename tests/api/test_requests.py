"""Resource requests of pods: sums, init containers, sidecars, pod level, overhead, resize, defaults for scoring."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.quantity import QuantityError
from kubestow.api.requests import (
    NON_ZERO_MEMORY,
    TO_SCORE,
    PodRequests,
    RequestRules,
    is_scalar_resource,
    pod_requests,
    resource_amounts,
)

Resources = dict[str, Any]


def container(requests: Resources | None = None, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {}}, **more}


def sidecar(requests: Resources, name: str = "side") -> dict[str, Any]:
    return container(requests, name, restartPolicy="Always")


def requests(
    *containers: dict[str, Any],
    status: dict[str, Any] | None = None,
    rules: RequestRules | None = None,
    **spec: Any,
) -> PodRequests:
    pod = convert(Pod, {"spec": {"containers": list(containers), **spec}, "status": status or {}})
    return pod_requests(pod) if rules is None else pod_requests(pod, rules)


def test_requests_of_one_container() -> None:
    """CPU is in thousandths, all others in whole units; only requested resources are listed."""
    asked = requests(container({"cpu": "1.5", "memory": "1Gi", "example.com/gpu": "2", "ephemeral-storage": "1k"}))
    assert asked.amounts == {"cpu": 1500, "memory": 2**30, "example.com/gpu": 2, "ephemeral-storage": 1000}
    assert (asked.non_zero_cpu, asked.non_zero_memory) == (1500, 2**30)


def test_containers_are_summed_before_rounding() -> None:
    """Fractions of a thousandth are added exactly and rounded up once."""
    asked = requests(container({"cpu": "100u"}, "a"), container({"cpu": "100u"}, "b"))
    assert asked.amounts == {"cpu": 1}


def test_other_resources_are_ignored() -> None:
    """Unknown names without a domain, and pods, are not requests."""
    amounts = {"cpu": "1", "pods": "3", "storage": "1Gi", "gpu": "1", "requests.example.com/x": "1"}
    assert requests(container(amounts)).amounts == {"cpu": 1000}
    assert requests(container(amounts), container({})).amounts == {"cpu": 1000}


def test_the_largest_init_container_counts() -> None:
    """Init containers run one by one: the largest request of each counts if it exceeds the containers' sum."""
    asked = requests(
        container({"cpu": "1", "memory": "1"}),
        initContainers=[container({"cpu": "3"}, "i"), container({"cpu": "2", "memory": "5"}, "j")],
    )
    assert asked.amounts == {"cpu": 3000, "memory": 5}


@pytest.mark.parametrize(
    ("inits", "cpu"),
    [
        ([sidecar({"cpu": "1"}), container({"cpu": "5"}, "i")], 6000),
        ([container({"cpu": "5"}, "i"), sidecar({"cpu": "1"})], 5000),
        ([sidecar({"cpu": "1"}), container({"cpu": "1"}, "i")], 3000),
        ([sidecar({"cpu": "1"}, "s"), container({"cpu": "4"}, "i"), sidecar({"cpu": "2"}, "t")], 5000),
    ],
)
def test_sidecars_are_added_to_all_later_containers(inits: list[dict[str, Any]], cpu: int) -> None:
    """A sidecar is added to the containers and to the init containers after it, not to earlier ones."""
    assert requests(container({"cpu": "2"}), initContainers=inits).amounts == {"cpu": cpu}


def test_overhead_is_added() -> None:
    """The overhead is added to the maximum, also for resources that no container requests."""
    asked = requests(container({"cpu": "1"}), overhead={"cpu": "250m", "memory": "1Mi"})
    assert asked.amounts == {"cpu": 1250, "memory": 2**20}
    assert asked.non_zero_memory == NON_ZERO_MEMORY + 2**20


def test_defaults_for_scoring_per_container() -> None:
    """A container without CPU or memory requests counts 100m or 200Mi in scoring; an explicit 0 stays 0."""
    asked = requests(container({"cpu": "1"}, "a"), container({"memory": "1Gi", "cpu": "0"}, "b"), container({}, "c"))
    assert asked.amounts == {"cpu": 1000, "memory": 2**30}
    assert asked.non_zero_cpu == 1100
    assert asked.non_zero_memory == 2**30 + 2 * NON_ZERO_MEMORY
    assert requests(container()) == PodRequests({}, 100, NON_ZERO_MEMORY)
    assert requests(container({"cpu": "0"})).non_zero_cpu == 0


def test_pod_level_requests_replace_the_sum() -> None:
    """Only CPU, memory and huge pages are supported at pod level; overhead is still added."""
    asked = requests(
        container({"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}),
        resources={"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "example.com/gpu": "9"}},
        overhead={"cpu": "1m"},
    )
    assert asked.amounts == {"cpu": 3001, "memory": 2**30, "example.com/gpu": 1, "hugepages-2Mi": 2**22}


def test_pod_level_requests_and_defaults() -> None:
    """With pod-level requests, scoring assumes amounts only for resources without any request."""
    containers = container({"cpu": "1"}, "a"), container({}, "b")
    asked = requests(*containers, resources={"requests": {"memory": "1Gi"}})
    assert asked == PodRequests({"cpu": 1000, "memory": 2**30}, 1000, 2**30)
    asked = requests(container(), container(), resources={"requests": {"memory": "1Gi"}})
    assert asked == PodRequests({"memory": 2**30}, 200, 2**30)


def test_scoring_of_fit_ignores_pod_level_requests() -> None:
    """For the score of NodeResourcesFit, only containers count, with their defaults."""
    containers = container({"cpu": "1"}, "a"), container({}, "b")
    asked = requests(*containers, resources={"requests": {"memory": "1Gi"}}, rules=TO_SCORE)
    assert asked == PodRequests({"cpu": 1000}, 1100, 2 * NON_ZERO_MEMORY)


def test_pod_level_requests_can_be_disabled() -> None:
    """Without the feature, the containers' sum counts."""
    asked = requests(container({"cpu": "1"}), resources={"requests": {"cpu": "3"}}, rules=RequestRules(pod_level=False))
    assert asked.amounts == {"cpu": 1000}


def resizing(spec: str, used: str, allocated: str, reason: str = "Deferred", **more: Any) -> PodRequests:
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": used}}, "allocatedResources": {"cpu": allocated}}
        ],
    }
    return requests(container({"cpu": spec}), status=status, **more)


@pytest.mark.parametrize(
    ("spec", "used", "allocated", "reason", "cpu"),
    [
        ("3", "1", "2", "Deferred", 3000),
        ("1", "2", "3", "Deferred", 3000),
        ("1", "3", "2", "Deferred", 3000),
        ("4", "1", "2", "Infeasible", 2000),
        ("4", "3", "2", "Infeasible", 3000),
    ],
)
def test_a_resize_holds_the_largest_amount(spec: str, used: str, allocated: str, reason: str, cpu: int) -> None:
    """Of requested, allocated and used, the largest counts; the request of an infeasible resize does not."""
    assert resizing(spec, used, allocated, reason).amounts == {"cpu": cpu}


def test_a_pending_pod_counts_its_requests() -> None:
    """Without in-place resize, or before there is a node, the status does not matter."""
    assert resizing("1", "2", "3", rules=RequestRules(status=False)).amounts == {"cpu": 1000}


def test_amounts_of_a_resize_are_compared_after_they_are_summed() -> None:
    """A container that grows while another one shrinks does not make the pod hold the largest amount of both."""
    status = {
        "containerStatuses": [
            {"name": "a", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}},
            {"name": "b", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}},
        ]
    }
    containers = container({"cpu": "1"}, "a"), container({"cpu": "2"}, "b")
    assert requests(*containers, status=status).amounts == {"cpu": 4000}


def test_amounts_that_the_node_does_not_report() -> None:
    """Used amounts default to the allocated ones, and those to the requests, except during an infeasible resize."""
    status: dict[str, Any] = {
        "containerStatuses": [
            {"name": "main", "allocatedResources": {"cpu": "9"}},
            {"name": "other", "resources": {"requests": {"cpu": "9"}}},
        ]
    }
    assert requests(container({"cpu": "1"}), status=status).amounts == {"cpu": 9000}
    status["containerStatuses"][0] = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    assert requests(container({"cpu": "3"}), status=status).amounts == {"cpu": 3000}
    status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    assert requests(container({"cpu": "3"}), status=status).amounts == {"cpu": 2000}


def test_init_containers_are_resized() -> None:
    """Sidecars and other init containers hold what the node reports."""
    status = {
        "initContainerStatuses": [
            {"name": "side", "resources": {"requests": {"cpu": "2"}}},
            {"name": "init", "resources": {"requests": {"cpu": "9"}}},
        ]
    }
    inits = [sidecar({"cpu": "1"}), container({"cpu": "1"}, "init")]
    assert requests(container({"cpu": "1"}), initContainers=inits, status=status).amounts == {"cpu": 11000}


def test_pod_level_requests_are_resized() -> None:
    """The pod holds the largest of requested, allocated and used amounts."""
    whole: dict[str, Any] = {"resources": {"requests": {"cpu": "2"}}}
    status = {"resources": {"requests": {"cpu": "3", "memory": "1"}}, "allocatedResources": {"cpu": "1"}}
    assert requests(container(), status=status, **whole).amounts == {"cpu": 3000, "memory": 1}
    assert requests(container(), status=status, **whole, rules=RequestRules(status=False)).amounts == {"cpu": 2000}
    without = RequestRules(pod_level_status=False)
    assert requests(container(), status=status, **whole, rules=without).amounts == {"cpu": 2000}


def test_amounts_reported_for_the_pod_replace_those_of_its_containers() -> None:
    """This needs both allocated and used amounts of the pod, but no pod-level requests."""
    status: dict[str, Any] = {
        "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}],
        "resources": {"requests": {"cpu": "3"}},
        "allocatedResources": {"cpu": "2"},
    }
    assert requests(container({"cpu": "1"}), status=status).amounts == {"cpu": 3000}
    without = RequestRules(pod_level_status=False)
    assert requests(container({"cpu": "1"}), status=status, rules=without).amounts == {"cpu": 9000}
    del status["allocatedResources"]
    assert requests(container({"cpu": "1"}), status=status).amounts == {"cpu": 9000}


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/a"]), st.integers(0, 10**6).map(lambda n: f"{n}m")
)


@given(st.lists(amounts, min_size=1, max_size=3), st.lists(st.tuples(amounts, st.booleans()), max_size=3))
def test_requests_equal_the_maximum_over_time(regular: list[Resources], inits: list[tuple[Resources, bool]]) -> None:
    """The sum at each moment of a pod's life is never above the requests, and once equal."""

    def milli(amount: str) -> int:
        return int(amount.removesuffix("m"))

    moments: list[list[Resources]] = []
    running: list[Resources] = []
    for resources, keeps_running in inits:
        moments.append([*running, resources])
        if keeps_running:
            running.append(resources)
    moments.append([*running, *regular])
    asked = requests(
        *(container(r, f"c{i}") for i, r in enumerate(regular)),
        initContainers=[(sidecar if keeps else container)(r, f"i{i}") for i, (r, keeps) in enumerate(inits)],
    )
    for name in {name for moment in moments for resources in moment for name in resources}:
        most = max(sum(milli(resources.get(name, "0m")) for resources in moment) for moment in moments)
        assert asked.amounts[name] == (most if name == "cpu" else -(-most // 1000))


@pytest.mark.parametrize(
    ("name", "scalar"),
    [
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("kubernetes.io/x", True),
        ("cpu", False),
        ("gpu", False),
        ("requests.example.com/gpu", False),
        ("example.com/-bad-", False),
        ("a/b/c", False),
    ],
)
def test_scalar_resources(name: str, scalar: bool) -> None:
    """Extended resources, huge pages, attachable volumes and kubernetes.io/ names are scalar; others are not."""
    assert is_scalar_resource(name) is scalar


def test_allocatable_of_a_node() -> None:
    """A node's list has the same units, and includes the number of pods."""
    offered = resource_amounts({"cpu": "3920m", "memory": "8Gi", "pods": "110", "example.com/gpu": 4, "storage": "1"})
    assert offered == {"cpu": 3920, "memory": 2**33, "pods": 110, "example.com/gpu": 4}


def test_an_invalid_amount_is_an_error() -> None:
    """An unparsable request is rejected, not ignored."""
    with pytest.raises(QuantityError, match="lots"):
        requests(container({"cpu": "lots"}))
