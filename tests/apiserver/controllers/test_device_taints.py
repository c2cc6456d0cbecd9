"""Pods that use tainted devices, and what rules that taint devices say of them."""

from typing import Any

import pytest

from apiserver.world import World, template
from kubestow.apiserver import Pace
from kubestow.apiserver.objects.binding import bind
from kubestow.apiserver.objects.intent import internal

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
TEMPLATES, RULES = "resourceclaimtemplates.resource.k8s.io", "devicetaintrules.resource.k8s.io"
DRIVER = "d.example.com"
FIRE = {"key": "fire", "effect": "NoExecute"}
EVICTED = ("DeviceTaintManagerEviction", "Marking for deletion")
SPARED = ("DeviceTaintManagerEviction", "Cancelling deletion")


@pytest.fixture
def world() -> World:
    """A node with two devices, and rules that are heeded; pods take a while to stop."""
    world = World(1, pace=Pace(start=1, run=10, stop=5), gates="DRADeviceTaintRules=true")
    publish(world, "s", "d0", "d1")
    return world


def publish(world: World, name: str, *devices: str, generation: int = 1, **taints: list[dict[str, Any]]) -> None:
    """A slice of the pool p; taints are told by the name of a device."""
    pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
    offered = [{"name": of, **({"taints": taints[of]} if of in taints else {})} for of in devices]
    world.create(SLICES, name, {"driver": DRIVER, "nodeName": "node-0", "pool": pool, "devices": offered})


def taint(world: World, device: str, *taints: dict[str, Any]) -> None:
    """Changes the taints of a device."""

    def alter(one: dict[str, Any]) -> None:
        next(of for of in one["spec"]["devices"] if of["name"] == device)["taints"] = [dict(each) for each in taints]

    world.update(SLICES, "s", alter)


def rule(world: World, effect: str = "NoExecute", name: str = "r", **selector: str) -> None:
    """A rule that taints the devices it selects."""
    world.create(RULES, name, {"deviceSelector": selector, "taint": {"key": "fire", "effect": effect}})


def tolerating(seconds: int | None = None, **more: str) -> dict[str, Any]:
    """A toleration of fire."""
    span = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": "fire", "operator": "Exists", "effect": "NoExecute", **span, **more}


def claim(world: World, name: str, device: str, *tolerations: dict[str, Any]) -> None:
    """A claim that has a device, as the scheduler allocates it."""
    wanted = {"deviceClassName": "c", **({"tolerations": list(tolerations)} if tolerations else {})}
    world.create(CLAIMS, name, {"devices": {"requests": [{"name": "r", "exactly": wanted}]}})
    allocate(world, name, device, *tolerations)


def allocate(world: World, name: str, device: str, *tolerations: dict[str, Any]) -> None:
    """Gives a claim a device."""
    told = {"tolerations": list(tolerations)} if tolerations else {}
    results = [{"request": "r", "driver": DRIVER, "pool": "p", "device": device, **told}]
    status = {"allocation": {"devices": {"results": results}}}
    world.update(CLAIMS, name, lambda one: one.update(status=status), sub="status")


def pod(world: World, name: str, *claims: str, **spec: Any) -> None:
    """A pod on the node that uses claims."""
    used = [{"name": of, "resourceClaimName": of} for of in claims]
    made = template(annotations={"run-seconds": "inf"}, resourceClaims=used, nodeName="node-0", **spec)
    annotations = made["metadata"]["annotations"]
    world.create("pods", name, made["spec"], metadata={"annotations": annotations})
    world.run(3)
    assert world.status("pods", name)["phase"] == "Running"


def is_going(world: World, name: str) -> bool:
    """Whether a pod is to be deleted, or gone."""
    return "deletionTimestamp" in (world.find("pods", name) or {"metadata": ["deletionTimestamp"]})["metadata"]


def test_a_pod_leaves_a_device_that_is_tainted(world: World) -> None:
    """The event, the condition, and then the deletion; pods with other devices, or none, stay."""
    claim(world, "a", "d0")
    claim(world, "b", "d1")
    pod(world, "leaves", "a")
    pod(world, "stays", "b")
    pod(world, "plain")
    taint(world, "d0", FIRE)
    world.run(1)
    condition = world.condition("pods", "leaves", "DisruptionTarget")
    told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}
    message = "Device Taint manager: deleting due to NoExecute taint"
    assert condition.items() >= {**told, "message": message}.items()
    assert world.events("Pod") == [EVICTED]
    world.run(60)
    assert [one["metadata"]["name"] for one in world.all("pods")] == ["stays", "plain"]


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_other_effects_evict_nobody(world: World, effect: str) -> None:
    """They keep pods away, or are there to try out a rule."""
    claim(world, "a", "d0")
    pod(world, "p", "a")
    taint(world, "d0", {"key": "fire", "effect": effect})
    rule(world, effect)
    world.run(600)
    assert not is_going(world, "p")


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
def test_patience_is_counted_from_the_taint(
    world: World, tolerations: list[dict[str, Any]], seconds: int | None
) -> None:
    """The shortest that was told, unless one has no end; tolerations must name the effect."""
    claim(world, "a", "d0", *tolerations)
    pod(world, "p", "a")
    taint(world, "d0", FIRE)
    world.run((seconds or 1) - 0.5)
    assert is_going(world, "p") == (seconds == 0)
    world.run(1)
    assert is_going(world, "p") == (seconds is not None)


def test_a_taint_that_goes_in_time_spares_the_pod(world: World) -> None:
    """It is told so once, and stays."""
    claim(world, "a", "d0", tolerating(30))
    pod(world, "p", "a")
    taint(world, "d0", FIRE)
    world.run(20)
    taint(world, "d0")
    world.run(60)
    assert not is_going(world, "p")
    taint(world, "d1", FIRE)
    world.update(CLAIMS, "a", lambda one: one["metadata"].update(labels={"a": "b"}))
    world.run(1)
    assert [(one["reason"], one["message"], one["count"]) for one in world.all("events")] == [(*SPARED, 1)]


def test_the_age_of_a_taint_is_the_server_s_to_know(world: World) -> None:
    """Unless the driver tells it; a rule's is that of its effect."""
    now, told = "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
    taint(world, "d0", FIRE)
    taint(world, "d1", {**FIRE, "timeAdded": told})
    ages = {of["name"]: of["taints"][0]["timeAdded"] for of in world.get(SLICES, "s")["spec"]["devices"]}
    assert ages == {"d0": now, "d1": told}
    rule(world, "None")
    world.run(60)
    world.update(RULES, "r", lambda one: one["metadata"].update(labels={"a": "b"}))
    assert world.get(RULES, "r")["spec"]["taint"]["timeAdded"] == now
    world.update(RULES, "r", lambda one: one["spec"]["taint"].update(effect="NoExecute"))
    assert world.get(RULES, "r")["spec"]["taint"]["timeAdded"] == "2026-01-01T00:01:00Z"
    world.update(RULES, "r", lambda one: one["spec"]["taint"].update(effect="None", timeAdded=told))
    assert world.get(RULES, "r")["spec"]["taint"]["timeAdded"] == told


def test_of_several_claims_the_least_patient_decides(world: World) -> None:
    """A pod uses two devices, and one is tolerated for longer."""
    claim(world, "a", "d0", tolerating(100))
    claim(world, "b", "d1", tolerating(20))
    pod(world, "p", "a", "b")
    taint(world, "d0", FIRE)
    world.run(10)
    taint(world, "d1", FIRE)
    world.run(15)
    assert not is_going(world, "p")
    world.run(10)
    assert is_going(world, "p")


def test_all_pods_that_share_a_claim_leave(world: World) -> None:
    """Each for itself; one that comes later leaves, too."""
    claim(world, "a", "d0")
    pod(world, "p", "a")
    pod(world, "q", "a")
    taint(world, "d0", FIRE)
    world.run(1)
    assert is_going(world, "p")
    assert is_going(world, "q")
    used = [{"name": "a", "resourceClaimName": "a"}]
    world.create("pods", "late", template(resourceClaims=used, nodeName="node-0")["spec"])
    world.run(2)
    assert is_going(world, "late")


def test_a_claim_made_from_a_template_counts(world: World) -> None:
    """The pod's status tells which it is."""
    wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    world.create(TEMPLATES, "t", {"spec": wanted})
    used = [{"name": "x", "resourceClaimTemplateName": "t"}]
    world.create("pods", "p", template(resourceClaims=used, nodeName="node-0")["spec"])
    world.run(1)
    (made,) = world.all(CLAIMS)
    allocate(world, made["metadata"]["name"], "d0")
    taint(world, "d0", FIRE)
    world.run(1)
    assert is_going(world, "p")


def test_a_pod_leaves_once_it_is_bound(world: World) -> None:
    """The scheduler may have reserved the claim before the device was tainted; a pod that waits is not deleted."""
    world.create("pods", "p", template(resourceClaims=[{"name": "a", "resourceClaimName": "a"}])["spec"])
    world.update("nodes", "node-0", lambda one: one["spec"].update(unschedulable=True))
    claim(world, "a", "d0")
    consumer = {"resource": "pods", "name": "p", "uid": world.get("pods", "p")["metadata"]["uid"]}
    world.update(CLAIMS, "a", lambda one: one["status"].update(reservedFor=[consumer]), sub="status")
    taint(world, "d0", FIRE)
    world.run(60)
    assert not is_going(world, "p")
    bind(world.store, "default", "p", {"target": {"name": "node-0"}}, internal())
    world.run(1)
    assert is_going(world, "p")


def test_a_claim_that_is_not_the_pod_s_does_not_count() -> None:
    """It names one that is reserved for others, and has not begun to use the device."""
    world = World(1, wanted="*,-resourceclaim-controller")
    publish(world, "s", "d0", d0=[FIRE])
    claim(world, "a", "d0")
    used = [{"name": "a", "resourceClaimName": "a"}]
    world.create("pods", "p", template(resourceClaims=used, nodeName="node-0")["spec"])
    world.run(60)
    assert not is_going(world, "p")


def test_a_pod_that_finishes_meanwhile_is_left_alone(world: World) -> None:
    """It has given its claim back, and no condition says that a taint did it."""
    claim(world, "a", "d0", tolerating(30))
    pod(world, "p", "a", restartPolicy="Never")
    taint(world, "d0", FIRE)
    world.run(5)
    world.update("pods", "p", lambda one: one["status"].update(phase="Succeeded"), sub="status")
    world.run(60)
    assert not is_going(world, "p")
    assert world.condition("pods", "p", "DisruptionTarget") == {}
    assert world.events("Pod") == [SPARED]


def test_a_pod_that_somebody_deletes_meanwhile_is_left_alone() -> None:
    """It takes its time, and nothing is said of the taint."""
    world = World(1, pace=Pace(start=1, run=10, stop=50))
    publish(world, "s", "d0")
    claim(world, "a", "d0", tolerating(30))
    pod(world, "p", "a", terminationGracePeriodSeconds=100)
    taint(world, "d0", FIRE)
    world.run(5)
    world.delete("pods", "p")
    world.run(30)
    assert world.condition("pods", "p", "DisruptionTarget") == {}
    world.run(60)
    assert world.find("pods", "p") is None
    assert world.events("Pod") == []


def test_only_the_newest_generation_of_a_pool_counts(world: World) -> None:
    """A driver that publishes its pool anew takes back the taints of the old slices."""
    claim(world, "a", "d0", tolerating(30))
    pod(world, "p", "a")
    taint(world, "d0", FIRE)
    publish(world, "newer", "d0", generation=2)
    world.run(60)
    assert not is_going(world, "p")
    world.delete(SLICES, "newer")
    world.run(1)
    assert is_going(world, "p")


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
    """By driver, pool and device; an empty selector selects all."""
    claim(world, "a", "d0")
    claim(world, "b", "d1")
    pod(world, "p", "a")
    pod(world, "q", "b")
    rule(world, **selector)
    world.run(1)
    assert [name for name in "pq" if is_going(world, name)] == list(leaves)


def test_without_its_gate_a_rule_does_nothing() -> None:
    """Neither pods nor the status of the rule tell of it; with DRADeviceTaints off, slices are not heeded either."""
    for gates in ("", "DRADeviceTaints=false"):
        world = World(1, gates=gates)
        publish(world, "s", "d0")
        claim(world, "a", "d0")
        pod(world, "p", "a")
        rule(world)
        world.run(60)
        assert not is_going(world, "p")
        assert world.status(RULES, "r") == {}
        taint(world, "d0", FIRE)
        world.run(1)
        assert is_going(world, "p") == (not gates)


def progress(world: World) -> tuple[str, str, str]:
    """What a rule says of its eviction."""
    condition = world.condition(RULES, "r", "EvictionInProgress")
    assert condition["observedGeneration"] == world.get(RULES, "r")["metadata"]["generation"]
    return condition["status"], condition["reason"], condition["message"]


def test_a_rule_tells_how_far_its_eviction_is(world: World) -> None:
    """Which pods are to leave, and ten seconds after the last has left that all is done."""
    claim(world, "a", "d0")
    claim(world, "b", "d1", tolerating(60))
    pod(world, "p", "a")
    pod(world, "q", "b")
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


def test_a_rule_reports_every_ten_seconds_at_most(world: World) -> None:
    """Pods that come later are counted in the next report."""
    claim(world, "a", "d0", tolerating(60))
    rule(world)
    world.run(1)
    pod(world, "p", "a")
    assert progress(world) == ("False", "NotStarted", "")
    world.run(8)
    assert progress(world) == ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
    before = world.condition(RULES, "r", "EvictionInProgress")
    world.run(15)
    world.update(CLAIMS, "a", lambda one: one["metadata"].update(labels={"a": "b"}))
    world.run(1)
    assert world.condition(RULES, "r", "EvictionInProgress") == before


def test_a_rule_that_evicts_nobody_says_so(world: World) -> None:
    """One that has not begun, one of another effect, and one that only tells what it would do."""
    claim(world, "a", "d0")
    pod(world, "p", "a")
    rule(world, driver="other.example.com")
    world.run(1)
    assert progress(world) == ("False", "NotStarted", "")
    world.update(
        RULES, "r", lambda one: one["spec"].update(deviceSelector={"driver": DRIVER}, taint={**FIRE, "effect": "None"})
    )
    world.run(1)
    told = (
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the "
        "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger "
        "an update."
    )
    assert progress(world) == ("False", "NoEffect", told)
    world.update(RULES, "r", lambda one: one["spec"]["taint"].update(effect="NoSchedule"))
    world.run(1)
    assert progress(world) == ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")
    assert not is_going(world, "p")


def test_a_rule_that_is_deleted_in_time_spares_pods(world: World) -> None:
    """Those of another rule leave all the same."""
    claim(world, "a", "d0", tolerating(30))
    claim(world, "b", "d1", tolerating(30))
    pod(world, "p", "a")
    pod(world, "q", "b")
    rule(world)
    rule(world, name="other", device="d1")
    world.run(5)
    world.delete(RULES, "r")
    world.run(60)
    assert not is_going(world, "p")
    assert is_going(world, "q")
