"""A pod for each rejection by DynamicResources, and for each way in which devices that exist do not suit a claim."""

import json
from typing import Any

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.devices import ResourceClaim, ResourceClaimTemplate
from kubestow.api.pod import Pod
from kubestow.config import Features
from kubestow.insight.explain.world import Setup
from kubestow.testing import make_node, make_pod
from support.insight.rejections import Scenario
from support.plugins.device_world import (
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

FEATURES = Features(
    dra_device_taint_rules=True,
    dra_extended_resource=True,
    dra_consumable_capacity=True,
    dra_device_binding_conditions=True,
    dra_resource_claim_device_status=True,
)
SETUP = Setup(config.default(FEATURES), FEATURES)
WITHOUT_LISTS = Features(dra_prioritized_list=False)
NODE, CLASS = make_node("a"), device_class()
UNFIT = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [UNFIT],
}
WITHOUT_FIT = Setup(config.load(json.dumps(CONFIGURATION), FEATURES), FEATURES)
SLICE = device_slice("a", gpus(1))
MODEL = 'device.attributes["gpu.example.com"].model == '
RESOURCE = device_class("gpu", extendedResourceName="example.com/gpu")


def of(objects: list[Any], text: str, change: str, pod: Pod | None = None, setup: Setup = SETUP) -> Scenario:
    """Return a scenario with a node, a device class, and a pod that names the claim `mine`."""
    return Scenario("DynamicResources", [NODE, *objects], pod or claiming("x", "mine"), text, change, setup)


def templated(template: str, **status: Any) -> Pod:
    claims = [{"name": "g", "resourceClaimTemplateName": template}]
    return make_pod("x", spec={"resourceClaims": claims}, status=status)


def template(name: str) -> ResourceClaimTemplate:
    manifest = {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": claim("c").spec}}
    return convert(ResourceClaimTemplate, manifest)


def changed(of: ResourceClaim, **metadata: Any) -> ResourceClaim:
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": of.metadata.name, "namespace": "default", "uid": "u", **metadata},
            "spec": of.spec,
            "status": of.status,
        },
    )


STALE = changed(
    allocated("old", "a", "gpu-0"),
    annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
    ownerReferences=[
        {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": make_pod("x").metadata.uid, "controller": True}
    ],
)
RACK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["7"]}]}]}
DEVICE_SCENARIOS = {
    "template is misspelt": of(
        [CLASS, SLICE, template("gpu-template")],
        "no resourceclaim has been created yet for claim g of the pod: there is no resourceclaimtemplate gpu-templat "
        "in namespace default; existing: gpu-template; did you mean gpu-template?",
        "claim g: template gpu-templat changed to gpu-template",
        templated("gpu-templat"),
    ),
    "claim of the template is not created": of(
        [CLASS, SLICE, template("gpu-template")],
        "no resourceclaim has been created yet for claim g of the pod: it comes from resourceclaimtemplate "
        "gpu-template",
        "claim g created from its template",
        templated("gpu-template"),
    ),
    "claim without a name": of(
        [CLASS, SLICE, claim("mine")],
        "claim g of the pod names neither a resourceclaim nor a template; existing: mine",
        "claim g: resourceclaim set to mine",
        make_pod("x", spec={"resourceClaims": [{"name": "g"}]}),
    ),
    "claim of another pod": of(
        [CLASS, SLICE, claim("mine")],
        'resourceclaim "mine" was not created for this pod: delete it',
        "resource claim default/mine deleted, so that it is created for the pod",
        templated("gpu-template", resourceClaimStatuses=[{"name": "g", "resourceClaimName": "mine"}]),
    ),
    "resource claim is being deleted": of(
        [CLASS, SLICE, changed(claim("mine"), deletionTimestamp="2026-01-01T00:00:00Z")],
        'resourceclaim "mine" is being deleted: create it again',
        "resource claim default/mine deleted and created again",
    ),
    "devices are tainted": of(
        [CLASS, device_slice("a", gpus(1, taints=["broken:NoSchedule"])), claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; devices have the taint broken:NoSchedule',
        "resource claim default/mine created again with a toleration of broken:NoSchedule",
    ),
    "rule taints devices": of(
        [CLASS, SLICE, taint_rule("broken-gpus", "broken:NoSchedule", driver="gpu.example.com"), claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; DeviceTaintRule broken-gpus taints '
        "gpu.example.com: broken:NoSchedule",
        "DeviceTaintRule broken-gpus deleted",
    ),
    "selector with a misspelt value": of(
        [CLASS, device_slice("a", gpus(2, model="a100")), claim("mine", exactly(1, f'{MODEL}"h100"'))],
        'resourceclaim "mine" wants 1 of gpu: there are 2 devices in 1 pool; no free device meets '
        'device.attributes["gpu.example.com"].model == "h100"; did you mean a100?',
        'resource claim default/mine created again with the selector device.attributes["gpu.example.com"].model == '
        '"a100"',
    ),
    "selector with a misspelt attribute": of(
        [
            CLASS,
            device_slice("a", gpus(2, model="a100")),
            claim("mine", exactly(1, f'{MODEL.replace("model", "modle")}"a100"')),
        ],
        'resourceclaim "mine" wants 1 of gpu: there are 2 devices in 1 pool; no free device meets '
        'device.attributes["gpu.example.com"].modle == "a100"; did you mean model?',
        'resource claim default/mine created again with the selector device.attributes["gpu.example.com"].model == '
        '"a100"',
    ),
    "selector that no device comes near": of(
        [CLASS, device_slice("a", gpus(2, model="a100")), claim("mine", exactly(1, f'{MODEL}"mi300"'))],
        'resourceclaim "mine" wants 1 of gpu: there are 2 devices in 1 pool; no free device meets '
        'device.attributes["gpu.example.com"].model == "mi300"',
        'resource claim default/mine created again without the selector device.attributes["gpu.example.com"].model '
        '== "mi300"',
    ),
    "more devices than there are": of(
        [CLASS, device_slice("a", gpus(2)), claim("mine", exactly(3))],
        'resourceclaim "mine" wants 3 of gpu: there are 2 devices in 1 pool; no node has more than 2 free for it',
        "resource claim default/mine created again with 2 devices instead of 3",
    ),
    "devices that differ": of(
        [
            CLASS,
            device_slice("a", [device("g0", model="a"), device("g1", model="b")]),
            claim("mine", exactly(2), constraints=[{"requests": ["r"], "matchAttribute": "gpu.example.com/model"}]),
        ],
        'resourceclaim "mine" wants 2 of gpu: there are 2 devices in 1 pool; no free devices have the same '
        "gpu.example.com/model",
        "resource claim default/mine created again without the constraint on gpu.example.com/model",
    ),
    "more memory than devices have": of(
        [
            CLASS,
            device_slice("a", [device("g0", memory="8Gi", allowMultipleAllocations=True)]),
            claim("mine", exactly(1, capacity={"requests": {"memory": "16Gi"}})),
        ],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; no free device has 16Gi of memory',
        "resource claim default/mine created again with 8Gi of memory instead of 16Gi",
    ),
    "devices of a node without room": of(
        [make_node("b", cpu=1), CLASS, device_slice("b", gpus(1)), claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; 1 node could give it devices (b): '
        "Insufficient cpu",
        "request of cpu lowered from 2 to 1",
        claiming("x", "mine", cpu=2),
    ),
    "no alternative has devices": of(
        [
            CLASS,
            device_class("big"),
            SLICE,
            allocated("theirs", "a", "gpu-0"),
            claim("mine", either(option("one"), option("two", 2, of="big"))),
        ],
        'resourceclaim "mine" wants 1 of gpu, 2 of big: there is 1 device in 1 pool, 1 taken by default/theirs (1)',
        "resource claim default/theirs freed",
    ),
    "all devices of a node": of(
        [CLASS, device_slice("a", gpus(2)), allocated("theirs", "a", "gpu-0"), claim("mine", exactly(0))],
        'resourceclaim "mine" wants all of gpu: there are 2 devices in 1 pool, 1 taken by default/theirs (1)',
        "resource claim default/theirs freed",
    ),
    "pool is incomplete": of(
        [CLASS, device_slice("a", gpus(1), slices=2), claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; pool gpu.example.com/a is incomplete: 1 '
        "of 2 slices are published",
        "",
    ),
    "pool is invalid": of(
        [CLASS, device_slice("a", [*gpus(1), *gpus(1)]), claim("mine", exactly(0))],
        'resourceclaim "mine" wants all of gpu: there are 2 devices in 1 pool; pool gpu.example.com/a names device '
        "gpu-0 twice",
        "",
    ),
    "pool that names a device twice": of(
        [CLASS, device_slice("a", [*gpus(1), *gpus(1)]), claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there are 2 devices in 1 pool; pool gpu.example.com/a names device '
        "gpu-0 twice",
        "",
    ),
    "stale claim of an extended resource": of(
        [RESOURCE, SLICE, STALE],
        "example.com/gpu is of device class gpu: there is 1 device in 1 pool, 1 taken by default/old (1)",
        "resource claim default/old deleted",
        make_pod("x", resources={"example.com/gpu": 1}),
    ),
    "extended resource beside one of devices": of(
        [RESOURCE, SLICE],
        "example.com/gpu is of device class gpu: there is 1 device in 1 pool",
        "request of example.com/nic changed to example.com/gpu",
        make_pod("x", resources={"example.com/gpu": 1, "example.com/nic": 1}),
        setup=WITHOUT_FIT,
    ),
    "class with a misspelt selector": of(
        [device_class("gpu", 'device.driver == "gpu.exmaple.com"'), SLICE, claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; no free device meets device.driver == '
        '"gpu.exmaple.com" of the class',
        'selector device.driver == "gpu.exmaple.com" of device class gpu changed to device.driver == "gpu.example.com"',
    ),
    "devices for nodes that do not exist": of(
        [CLASS, device_slice("", gpus(1), pool="far", nodeSelector=RACK), claim("mine")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; no node can access them: they are for '
        "nodes rack In 7",
        "label rack=7 added to node a",
    ),
    "claims that want more than a node has": of(
        [CLASS, SLICE, claim("mine"), claim("other")],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; the claims of the pod want more than a '
        "node has free",
        "",
        claiming("x", "mine", "other"),
    ),
    "no devices at all": of(
        [CLASS, claim("mine")], 'resourceclaim "mine" wants 1 of gpu: there are 0 devices in 0 pools', ""
    ),
    "request without a type": of(
        [CLASS, SLICE, claim("mine", {"name": "r"})],
        'resourceclaim "mine" wants no device class: there is 1 device in 1 pool',
        "",
    ),
    "list while lists are off": of(
        [CLASS, SLICE, claim("mine", either(option("one")))],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; request r has alternatives',
        "resource claim default/mine created again with one only",
        setup=Setup(config.default(WITHOUT_LISTS), WITHOUT_LISTS),
    ),
    "capacity while it is off": of(
        [CLASS, SLICE, claim("mine", exactly(1, capacity={"requests": {"memory": "1Gi"}}))],
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool; no free device has the requested capacity',
        "resource claim default/mine created again without its requests of capacity",
        setup=Setup(config.default(WITHOUT_LISTS), Features(dra_consumable_capacity=False)),
    ),
    "devices of an extended resource are taken": of(
        [RESOURCE, SLICE, allocated("theirs", "a", "gpu-0")],
        "example.com/gpu is of device class gpu: there is 1 device in 1 pool, 1 taken by default/theirs (1)",
        "resource claim default/theirs freed",
        make_pod("x", resources={"example.com/gpu": 1}),
    ),
    "extended resource of too many devices": of(
        [RESOURCE, device_slice("a", gpus(3))],
        "example.com/gpu is of device class gpu: there are 3 devices in 1 pool",
        "request of example.com/gpu lowered from 5 to 3",
        make_pod("x", resources={"example.com/gpu": 5}),
    ),
    "extended resource is misspelt": of(
        [RESOURCE, SLICE],
        "no node has the resource example.com/gpus; did you mean example.com/gpu (device class gpu)?",
        "request of example.com/gpus changed to example.com/gpu",
        make_pod("x", resources={"example.com/gpus": 1}),
    ),
}
