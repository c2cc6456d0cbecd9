"""Eviction of pods from tainted devices, and the status of rules that taint devices."""

from typing import Any

import pytest

from kubestow.apiserver import Pace
from kubestow.apiserver.objects.binding import bind
from kubestow.apiserver.objects.intent import internal
from support.apiserver.world import World, template

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
TEMPLATES, RULES = "resourceclaimtemplates.resource.k8s.io", "devicetaintrules.resource.k8s.io"
DRIVER = "d.example.com"
FIRE = {"key": "fire", "effect": "NoExecute"}
EVICTED = ("DeviceTaintManagerEviction", "Marking for deletion")
SPARED = ("DeviceTaintManagerEviction", "Cancelling deletion")

pytestmark = pytest.mark.world(nodes=1, pace=Pace(start=1, run=10, stop=5))


@pytest.fixture(autouse=True)
def _two_devices(world: World) -> None:
    publish(world, "s", "d0", "d1")


def publish(world: World, name: str, *devices: str, generation: int = 1, **taints: list[dict[str, Any]]) -> None:
    """Publish a slice of the pool p, with taints by device name."""
    pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
    offered = [{"name": of, **({"taints": taints[of]} if of in taints else {})} for of in devices]
    world.create(SLICES, name, {"driver": DRIVER, "nodeName": "node-0", "pool": pool, "devices": offered})


def taint(world: World, device: str, *taints: dict[str, Any]) -> None:
    """Change the taints of a device."""

    def alter(one: dict[str, Any]) -> None:
        next(of for of in one["spec"]["devices"] if of["name"] == device)["taints"] = [dict(each) for each in taints]

    world.update(SLICES, "s", alter)


def rule(world: World, effect: str = "NoExecute", name: str = "r", **selector: str) -> None:
    """Create a rule that taints the selected devices."""
    world.create(RULES, name, {"deviceSelector": selector, "taint": {"key": "fire", "effect": effect}})


def tolerating(seconds: int | None = None, **more: str) -> dict[str, Any]:
    """Return a toleration of the taint fire."""
    span = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": "fire", "operator": "Exists", "effect": "NoExecute", **span, **more}


def claim(world: World, name: str, device: str, *tolerations: dict[str, Any]) -> None:
    """Create a claim with an allocated device, as the scheduler does."""
    wanted = {"deviceClassName": "c", **({"tolerations": list(tolerations)} if tolerations else {})}
    world.create(CLAIMS, name, {"devices": {"requests": [{"name": "r", "exactly": wanted}]}})
    allocate(world, name, device, *tolerations)


def allocate(world: World, name: str, device: str, *tolerations: dict[str, Any]) -> None:
    """Allocate a device to a claim."""
    extra = {"tolerations": list(tolerations)} if tolerations else {}
    results = [{"request": "r", "driver": DRIVER, "pool": "p", "device": device, **extra}]
    status = {"allocation": {"devices": {"results": results}}}
    world.update(CLAIMS, name, lambda one: one.update(status=status), sub="status")


def create_pod(world: World, name: str, *claims: str, **spec: Any) -> None:
    """Create a pod on the node that uses claims."""
    used = [{"name": of, "resourceClaimName": of} for of in claims]
    made = template(annotations={"run-seconds": "inf"}, resourceClaims=used, nodeName="node-0", **spec)
    annotations = made["metadata"]["annotations"]
    world.create("pods", name, made["spec"], metadata={"annotations": annotations})
    world.run(3)
    assert world.status("pods", name)["phase"] == "Running"


def is_deleted(world: World, name: str) -> bool:
    """Return whether a pod is deleted, or being deleted."""
    return "deletionTimestamp" in (world.find("pods", name) or {"metadata": ["deletionTimestamp"]})["metadata"]


def test_a_pod_is_evicted_from_a_tainted_device(world: World) -> None:
    """With an event, a condition, and the deletion; other pods are not affected."""
    claim(world, "a", "d0")
    claim(world, "b", "d1")
    create_pod(world, "leaves", "a")
    create_pod(world, "stays", "b")
    create_pod(world, "plain")
    taint(world, "d0", FIRE)
    world.run(1)
    condition = world.condition("pods", "leaves", "DisruptionTarget")
    expected = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}
    message = "Device Taint manager: deleting due to NoExecute taint"
    assert condition.items() >= {**expected, "message": message}.items()
    assert world.events("Pod") == [EVICTED]
    world.run(60)
    assert [one["metadata"]["name"] for one in world.all("pods")] == ["stays", "plain"]


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_other_effects_evict_no_pod(world: World, effect: str) -> None:
    """They prevent scheduling, or preview a rule."""
    claim(world, "a", "d0")
    create_pod(world, "p", "a")
    taint(world, "d0", {"key": "fire", "effect": effect})
    rule(world, effect)
    world.run(600)
    assert not is_deleted(world, "p")


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([tolerating()], None),
        ([tolerating(30)], 30),
        ([tolerating(-5)], 0),
        ([tolerating(30), tolerating(20)], 20),
        ([tolerating(30), tolerating()], None),
        ([tolerating(30, key="water")], 0),
        ([{"operator": "Exists", "effect": "NoExecute"}], None),
        ([{"key": "fire", "value": "hot", "effect": "NoExecute", "operator": "Equal"}], 0),
        ([{"key": "fire", "operator": "Exists"}], 0),
    ],
    ids=["ever", "awhile", "negative", "shortest", "one-ever", "other-key", "all", "other-value", "no-effect-named"],
)
def test_the_toleration_starts_with_the_taint(
    world: World, tolerations: list[dict[str, Any]], seconds: int | None
) -> None:
    """The shortest toleration that names the effect applies, unless one is unlimited."""
    claim(world, "a", "d0", *tolerations)
    create_pod(world, "p", "a")
    taint(world, "d0", FIRE)
    world.run((seconds or 1) - 0.5)
    assert is_deleted(world, "p") == (seconds == 0)
    world.run(1)
    assert is_deleted(world, "p") == (seconds is not None)


def test_removing_a_taint_cancels_the_eviction(world: World) -> None:
    """One event is recorded, and the pod continues."""
    claim(world, "a", "d0", tolerating(30))
    create_pod(world, "p", "a")
    taint(world, "d0", FIRE)
    world.run(20)
    taint(world, "d0")
    world.run(60)
    assert not is_deleted(world, "p")
    taint(world, "d1", FIRE)
    world.update(CLAIMS, "a", lambda one: one["metadata"].update(labels={"a": "b"}))
    world.run(1)
    assert [(one["reason"], one["message"], one["count"]) for one in world.all("events")] == [(*SPARED, 1)]


def test_the_server_sets_the_time_of_a_taint(world: World) -> None:
    """Unless the driver sets it; the time of a rule's taint is that of its effect."""
    now, earlier = "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
    taint(world, "d0", FIRE)
    taint(world, "d1", {**FIRE, "timeAdded": earlier})
    ages = {of["name"]: of["taints"][0]["timeAdded"] for of in world.get(SLICES, "s")["spec"]["devices"]}
    assert ages == {"d0": now, "d1": earlier}
    rule(world, "None")
    world.run(60)
    world.update(RULES, "r", lambda one: one["metadata"].update(labels={"a": "b"}))
    assert world.get(RULES, "r")["spec"]["taint"]["timeAdded"] == now
    world.update(RULES, "r", lambda one: one["spec"]["taint"].update(effect="NoExecute"))
    assert world.get(RULES, "r")["spec"]["taint"]["timeAdded"] == "2026-01-01T00:01:00Z"
    world.update(RULES, "r", lambda one: one["spec"]["taint"].update(effect="None", timeAdded=earlier))
    assert world.get(RULES, "r")["spec"]["taint"]["timeAdded"] == earlier


def test_the_shortest_toleration_of_several_claims_applies(world: World) -> None:
    """A pod uses two devices with different tolerations."""
    claim(world, "a", "d0", tolerating(100))
    claim(world, "b", "d1", tolerating(20))
    create_pod(world, "p", "a", "b")
    taint(world, "d0", FIRE)
    world.run(10)
    taint(world, "d1", FIRE)
    world.run(15)
    assert not is_deleted(world, "p")
    world.run(10)
    assert is_deleted(world, "p")


def test_all_pods_that_share_a_claim_are_evicted(world: World) -> None:
    """Also a pod that is created later."""
    claim(world, "a", "d0")
    create_pod(world, "p", "a")
    create_pod(world, "q", "a")
    taint(world, "d0", FIRE)
    world.run(1)
    assert is_deleted(world, "p")
    assert is_deleted(world, "q")
    used = [{"name": "a", "resourceClaimName": "a"}]
    world.create("pods", "late", template(resourceClaims=used, nodeName="node-0")["spec"])
    world.run(2)
    assert is_deleted(world, "late")


def test_a_claim_made_from_a_template_counts(world: World) -> None:
    """The status of the pod contains its name."""
    wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    world.create(TEMPLATES, "t", {"spec": wanted})
    used = [{"name": "x", "resourceClaimTemplateName": "t"}]
    world.create("pods", "p", template(resourceClaims=used, nodeName="node-0")["spec"])
    world.run(1)
    (made,) = world.all(CLAIMS)
    allocate(world, made["metadata"]["name"], "d0")
    taint(world, "d0", FIRE)
    world.run(1)
    assert is_deleted(world, "p")


def test_a_pod_is_evicted_only_after_it_is_bound(world: World) -> None:
    """The claim can be reserved before the device is tainted; an unbound pod is not deleted."""
    world.create("pods", "p", template(resourceClaims=[{"name": "a", "resourceClaimName": "a"}])["spec"])
    world.update("nodes", "node-0", lambda one: one["spec"].update(unschedulable=True))
    claim(world, "a", "d0")
    consumer = {"resource": "pods", "name": "p", "uid": world.get("pods", "p")["metadata"]["uid"]}
    world.update(CLAIMS, "a", lambda one: one["status"].update(reservedFor=[consumer]), sub="status")
    taint(world, "d0", FIRE)
    world.run(60)
    assert not is_deleted(world, "p")
    bind(world.store, "default", "p", {"target": {"name": "node-0"}}, internal())
    world.run(1)
    assert is_deleted(world, "p")


def test_a_claim_reserved_for_other_pods_does_not_count() -> None:
    """The pod refers to it, but does not use its device yet."""
    world = World(1, wanted="*,-resourceclaim-controller")
    publish(world, "s", "d0", d0=[FIRE])
    claim(world, "a", "d0")
    used = [{"name": "a", "resourceClaimName": "a"}]
    world.create("pods", "p", template(resourceClaims=used, nodeName="node-0")["spec"])
    world.run(60)
    assert not is_deleted(world, "p")


def test_a_pod_that_finishes_is_not_evicted(world: World) -> None:
    """Its claim is released, and it gets no condition."""
    claim(world, "a", "d0", tolerating(30))
    create_pod(world, "p", "a", restartPolicy="Never")
    taint(world, "d0", FIRE)
    world.run(5)
    world.update("pods", "p", lambda one: one["status"].update(phase="Succeeded"), sub="status")
    world.run(60)
    assert not is_deleted(world, "p")
    assert world.condition("pods", "p", "DisruptionTarget") == {}
    assert world.events("Pod") == [SPARED]


def test_a_pod_that_is_being_deleted_is_not_evicted() -> None:
    """It takes its time, without an event or condition."""
    world = World(1, pace=Pace(start=1, run=10, stop=50))
    publish(world, "s", "d0")
    claim(world, "a", "d0", tolerating(30))
    create_pod(world, "p", "a", terminationGracePeriodSeconds=100)
    taint(world, "d0", FIRE)
    world.run(5)
    world.delete("pods", "p")
    world.run(30)
    assert world.condition("pods", "p", "DisruptionTarget") == {}
    world.run(60)
    assert world.find("pods", "p") is None
    assert world.events("Pod") == []


def test_only_the_newest_generation_of_a_pool_counts(world: World) -> None:
    """A driver that publishes a new generation removes the taints of old slices."""
    claim(world, "a", "d0", tolerating(30))
    create_pod(world, "p", "a")
    taint(world, "d0", FIRE)
    publish(world, "newer", "d0", generation=2)
    world.run(60)
    assert not is_deleted(world, "p")
    world.delete(SLICES, "newer")
    world.run(1)
    assert is_deleted(world, "p")


@pytest.mark.parametrize(
    ("selector", "leaves"),
    [
        ({"driver": DRIVER}, "pq"),
        ({"pool": "p", "device": "d1"}, "q"),
        ({"driver": "other.example.com"}, ""),
        ({}, "pq"),
    ],
    ids=["driver", "device", "other", "all"],
)
def test_a_rule_taints_what_it_selects(world: World, selector: dict[str, str], leaves: str) -> None:
    """By driver, pool and device; an empty selector selects all devices."""
    claim(world, "a", "d0")
    claim(world, "b", "d1")
    create_pod(world, "p", "a")
    create_pod(world, "q", "b")
    rule(world, **selector)
    world.run(1)
    assert [name for name in "pq" if is_deleted(world, name)] == list(leaves)


def test_without_its_gate_a_rule_does_nothing() -> None:
    """Neither eviction nor status; without DRADeviceTaints, slices are ignored, too."""
    for gates, is_taken in (
        ("DRADeviceTaintRules=false", True),
        ("DRADeviceTaintRules=false,DRADeviceTaints=false", False),
    ):
        world = World(1, gates=gates)
        publish(world, "s", "d0")
        claim(world, "a", "d0")
        create_pod(world, "p", "a")
        rule(world)
        world.run(60)
        assert not is_deleted(world, "p")
        assert world.status(RULES, "r") == {}
        taint(world, "d0", FIRE)
        world.run(1)
        assert is_deleted(world, "p") == is_taken


def progress(world: World) -> tuple[str, str, str]:
    """Return the eviction condition of a rule."""
    condition = world.condition(RULES, "r", "EvictionInProgress")
    assert condition["observedGeneration"] == world.get(RULES, "r")["metadata"]["generation"]
    return condition["status"], condition["reason"], condition["message"]


def test_a_rule_reports_the_progress_of_its_eviction(world: World) -> None:
    """The pods to evict, and ten seconds after the last one, completion."""
    claim(world, "a", "d0")
    claim(world, "b", "d1", tolerating(60))
    create_pod(world, "p", "a")
    create_pod(world, "q", "b")
    rule(world)
    world.run(1)
    assert progress(world) == ("True", "PodsPendingEviction", "2 pods need to be evicted in 1 namespace.")
    world.run(10)
    evicted = "1 pod evicted since starting the controller."
    one = f"1 pod needs to be evicted in 1 namespace. {evicted}"
    assert progress(world) == ("True", "PodsPendingEviction", one)
    world.run(58)
    assert progress(world) == ("True", "PodsPendingEviction", one)
    world.run(10)
    assert progress(world) == ("False", "Completed", "2 pods evicted since starting the controller.")
    world.delete(RULES, "r")
    world.run(1)
    rule(world)
    world.run(1)
    assert progress(world) == ("False", "NotStarted", "")


def test_a_rule_reports_at_most_every_ten_seconds(world: World) -> None:
    """Later pods are counted in the next report."""
    claim(world, "a", "d0", tolerating(60))
    rule(world)
    world.run(1)
    create_pod(world, "p", "a")
    assert progress(world) == ("False", "NotStarted", "")
    world.run(8)
    assert progress(world) == ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
    before = world.condition(RULES, "r", "EvictionInProgress")
    world.run(15)
    world.update(CLAIMS, "a", lambda one: one["metadata"].update(labels={"a": "b"}))
    world.run(1)
    assert world.condition(RULES, "r", "EvictionInProgress") == before


def test_a_rule_without_evictions_reports_the_reason(world: World) -> None:
    """Not started, another effect, or only a preview."""
    claim(world, "a", "d0")
    create_pod(world, "p", "a")
    rule(world, driver="other.example.com")
    world.run(1)
    assert progress(world) == ("False", "NotStarted", "")
    world.update(
        RULES, "r", lambda one: one["spec"].update(deviceSelector={"driver": DRIVER}, taint={**FIRE, "effect": "None"})
    )
    world.run(1)
    expected = (
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the "
        "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger "
        "an update."
    )
    assert progress(world) == ("False", "NoEffect", expected)
    world.update(RULES, "r", lambda one: one["spec"]["taint"].update(effect="NoSchedule"))
    world.run(1)
    assert progress(world) == ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")
    assert not is_deleted(world, "p")


def test_deleting_a_rule_cancels_its_evictions(world: World) -> None:
    """Pods selected by another rule are still evicted."""
    claim(world, "a", "d0", tolerating(30))
    claim(world, "b", "d1", tolerating(30))
    create_pod(world, "p", "a")
    create_pod(world, "q", "b")
    rule(world)
    rule(world, name="other", device="d1")
    world.run(5)
    world.delete(RULES, "r")
    world.run(60)
    assert not is_deleted(world, "p")
    assert is_deleted(world, "q")
