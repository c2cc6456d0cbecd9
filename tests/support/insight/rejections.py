"""A pod for each rejection that an in-tree plugin can give, with the cause to name and the change to suggest first."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from kubestow import config
from kubestow.api.meta import OwnerReference
from kubestow.api.pod import Pod
from kubestow.config import Features
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import Setup, World
from kubestow.testing import make_node, make_pod, make_pod_group
from support.insight.objects import APP, WEB, ZONE, in_any, required, spreading
from support.insight.storage import (
    DRIVER,
    at,
    bound,
    claim,
    csi_node,
    driver,
    manual_class,
    pool,
    storage_class,
    volume,
)
from support.plugins.device_world import allocated, claiming, device_class, device_slice, exactly, gpus
from support.plugins.device_world import claim as device_claim

NODES = [make_node(f"n{i}", zone=f"zone-{'abc'[i]}") for i in range(3)]
FAST = storage_class("fast")
DISK = {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "disk-1"}}]}
RESTARTING = {
    "containers": [
        {
            "name": "main",
            "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}],
        }
    ]
}
ALL_GATES = Features(generic_workload=True, node_declared_features=True)
SETUP = Setup(config.default(ALL_GATES), ALL_GATES)


class Scenario(NamedTuple):
    """A pod that fits nowhere, for one reason."""

    plugin: str
    objects: list[Any]
    pod: Pod
    text: str
    """The first cause; empty if the reason of the nodes says it all."""
    change: str
    """The first suggestion; empty if there is none."""
    setup: Setup = SETUP


def db(**options: Any) -> Pod:
    return make_pod("db", claims=["data"], **options)


def web(name: str, **options: Any) -> Pod:
    return make_pod(name, labels=APP, **options)


def replica(pod: Pod) -> Pod:
    """Return the pod as one of a ReplicaSet."""
    owner = OwnerReference("apps/v1", "ReplicaSet", "web-5d", "uid-web-5d", True)
    return replace(pod, metadata=replace(pod.metadata, ownerReferences=(owner,)))


AWAY = required("podAntiAffinity", topologyKey=ZONE, labelSelector=WEB)
NEAR_CACHE = required("podAffinity", topologyKey=ZONE, labelSelector={"matchLabels": {"app": "chache"}})
CACHE = make_pod("cache-0", labels={"app": "cache"}, node="n1")

SCENARIOS = {
    # Claims
    "claim does not exist": Scenario(
        "VolumeRestrictions",
        [*NODES, FAST],
        db(),
        'persistentvolumeclaim "data" not found in namespace default: create it',
        "claim default/data created with storageclass fast",
    ),
    "claim is misspelt": Scenario(
        "VolumeRestrictions",
        [*NODES, FAST, claim("date", "fast")],
        db(),
        'persistentvolumeclaim "data" not found in namespace default: create it; did you mean date?',
        "volume data: claim data changed to date",
    ),
    "claim is in another namespace": Scenario(
        "VolumeRestrictions",
        [*NODES, FAST, claim("data", "fast", metadata={"namespace": "shop"})],
        db(),
        'persistentvolumeclaim "data" not found in namespace default: create it; namespace shop has one, which pods of '
        "other namespaces cannot use",
        "claim default/data created with storageclass fast",
    ),
    "claim of an ephemeral volume": Scenario(
        "VolumeBinding",
        [*NODES, FAST],
        make_pod(
            "db",
            spec={
                "volumes": [
                    {
                        "name": "scratch",
                        "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}},
                    }
                ]
            },
        ),
        'persistentvolumeclaim "db-scratch" of the ephemeral volume scratch is not created yet; a controller creates '
        "it",
        "claim default/db-scratch created with storageclass fast",
    ),
    "claim of an ephemeral volume that belongs to another pod": Scenario(
        "VolumeBinding",
        [*NODES, FAST, claim("db-scratch", "fast")],
        make_pod(
            "db",
            spec={
                "volumes": [
                    {
                        "name": "scratch",
                        "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}},
                    }
                ]
            },
        ),
        'persistentvolumeclaim "db-scratch" exists, but was not created for this pod: delete it',
        "claim default/db-scratch deleted and created again with storageclass fast",
    ),
    "claim has lost its volume": Scenario(
        "VolumeBinding",
        [*NODES, FAST, claim("data", "fast", volumeName="pv-1", status={"phase": "Lost"})],
        db(),
        'persistentvolumeclaim "data" is bound to persistentvolume "pv-1", which does not exist any more',
        "claim default/data deleted and created again with storageclass fast",
    ),
    "claim is being deleted": Scenario(
        "VolumeBinding",
        [*NODES, FAST, claim("data", "fast", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
        db(),
        'persistentvolumeclaim "data" is being deleted: create it again',
        "claim default/data deleted and created again with storageclass fast",
    ),
    "storage class is misspelt": Scenario(
        "VolumeBinding",
        [*NODES, FAST, storage_class("slow"), claim("data", "fsat")],
        db(),
        'persistentvolumeclaim "data" has no volume, and its storageclass "fsat" does not exist; existing: fast, slow; '
        "did you mean fast?",
        "claim default/data created again with storageclass fast",
    ),
    "no storage class": Scenario(
        "VolumeBinding",
        [*NODES, FAST, claim("data", "")],
        db(),
        'persistentvolumeclaim "data" has no volume and names no storageclass; existing: fast',
        "claim default/data created again with storageclass fast",
    ),
    "class binds at once and nothing was provisioned": Scenario(
        "VolumeBinding",
        [*NODES, storage_class("quick", "Immediate"), claim("data", "quick")],
        db(),
        f'persistentvolumeclaim "data" has no volume yet: storageclass "quick" binds at once, but {DRIVER} made none',
        "a volume created for claim default/data: 10Gi, ReadWriteOnce, storageclass quick",
    ),
    "class without a provisioner binds at once": Scenario(
        "VolumeBinding",
        [*NODES, manual_class("local", "Immediate"), claim("data", "local"), volume("pv-1", "local", "5Gi")],
        db(),
        'persistentvolumeclaim "data" waits for a volume: storageclass "local" provisions none, and pv-1 is too small '
        "(5Gi)",
        "a volume created for claim default/data: 10Gi, ReadWriteOnce, storageclass local",
    ),
    "no free volume": Scenario(
        "VolumeBinding",
        [
            *NODES,
            manual_class("local"),
            claim("data", "local"),
            volume("pv-1", "local", "5Gi"),
            volume("pv-2", "local", claimRef={"namespace": "shop", "name": "cart"}),
        ],
        db(),
        'persistentvolumeclaim "data" (10Gi, ReadWriteOnce, storageclass local): storageclass "local" provisions no '
        "volumes, and pv-1 is too small (5Gi); pv-2 is taken by shop/cart",
        "claim default/data created again with 5Gi instead of 10Gi",
    ),
    "class provisions in another zone": Scenario(
        "VolumeBinding",
        [
            *NODES,
            storage_class("far", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-A"]}]}]),
            claim("data", "far"),
        ],
        db(),
        f'persistentvolumeclaim "data" (10Gi, ReadWriteOnce, storageclass far): storageclass "far" provisions only in '
        f"{ZONE}=zone-A; 0 nodes there; did you mean zone-a?",
        f"storageclass far created again, with {ZONE}=zone-a allowed as well",
    ),
    "capacity of the driver is exhausted": Scenario(
        "VolumeBinding",
        [
            *NODES,
            FAST,
            driver(storageCapacity=True),
            pool("fast", "5Gi", **{ZONE: "zone-a"}),
            pool("fast", "2Gi", **{ZONE: "zone-b"}),
            claim("data", "fast"),
        ],
        db(),
        f'persistentvolumeclaim "data" (10Gi, ReadWriteOnce, storageclass fast) does not fit the capacity of {DRIVER}, '
        'storageclass "fast": it has 5Gi in zone-a, 2Gi in zone-b',
        "claim default/data created again with 5Gi instead of 10Gi",
    ),
    "claim is being provisioned for a node that is gone": Scenario(
        "VolumeBinding",
        [*NODES, FAST, claim("data", "fast", metadata={"annotations": {"volume.kubernetes.io/selected-node": "old"}})],
        db(),
        'persistentvolumeclaim "data" is being provisioned for node old, which does not exist any more, so only this '
        "node can be used",
        "claim default/data deleted and created again with storageclass fast",
    ),
    "volume does not exist": Scenario(
        "VolumeZone",
        [*NODES, FAST, bound("data", "pv-1")],
        db(),
        'persistentvolumeclaim "data" is bound to persistentvolume "pv-1", which does not exist',
        "claim default/data deleted and created again with storageclass fast",
    ),
    "volume in a zone without room": Scenario(
        "VolumeBinding",
        [
            make_node("a", zone="zone-a", cpu=1),
            NODES[1],
            volume("pv-1", nodeAffinity=at(ZONE, "zone-a")),
            bound("data", "pv-1"),
        ],
        db(cpu=2),
        f'persistentvolume "pv-1" of claim "data" can only be used by nodes with {ZONE}=zone-a; 1 node there (a): '
        "Insufficient cpu",
        "request of cpu lowered from 2 to 1",
    ),
    "volume whose label is of another zone": Scenario(
        "VolumeZone",
        [*NODES, volume("pv-1", labels={ZONE: "zone-z"}), bound("data", "pv-1")],
        db(),
        f'persistentvolume "pv-1" of claim "data" can only be used by nodes with {ZONE}=zone-z; there is none',
        f"volume pv-1 moved to {ZONE}=zone-a",
    ),
    "driver is not installed": Scenario(
        "NodeVolumeLimits",
        [
            make_node("a"),
            make_node("b", cpu=1),
            FAST,
            driver(preventPodSchedulingIfMissing=True),
            csi_node("a"),
            csi_node("b", DRIVER),
            claim("data", "fast"),
        ],
        db(cpu=2),
        f"CSI driver {DRIVER} is not installed on 1 node: a; it is on b: Insufficient cpu",
        f"CSI driver {DRIVER} installed on node a",
    ),
    "volume limit of the nodes": Scenario(
        "NodeVolumeLimits",
        [
            make_node("a"),
            FAST,
            csi_node("a", DRIVER, limit=1),
            claim("data", "fast"),
            bound("other", "pv-1"),
            volume("pv-1", csi={"driver": DRIVER, "volumeHandle": "h1"}),
            make_pod("there", node="a", claims=["other"]),
        ],
        db(),
        f"the volume limit of CSI driver {DRIVER} is reached: a has 1 of 1",
        f"volume limit of CSI driver {DRIVER} on node a raised to 2",
    ),
    "claim of a single pod": Scenario(
        "VolumeRestrictions",
        [
            *NODES,
            volume("pv-1"),
            bound("data", "pv-1", accessModes=["ReadWriteOncePod"]),
            make_pod("user", node="n0", claims=["data"]),
        ],
        db(),
        'persistentvolumeclaim "data" is ReadWriteOncePod and in use by default/user on n0',
        "claim default/data freed by default/user",
    ),
    "disk is in use": Scenario(
        "VolumeRestrictions",
        [make_node("a"), make_pod("user", node="a", spec=DISK)],
        make_pod("db", spec=DISK),
        "volume v: disk disk-1 is in use on a by default/user",
        "pod default/user removed",
    ),
    # Labels, names and features of nodes
    "value that differs in case": Scenario(
        "NodeAffinity",
        NODES,
        make_pod("x", node_selector={ZONE: "zone-A"}),
        f"no node has {ZONE}=zone-A; 1 node has zone-a: did you mean that?",
        f"node selector {ZONE}=zone-A changed to {ZONE}=zone-a",
    ),
    "key that no node has": Scenario(
        "NodeAffinity",
        NODES,
        make_pod("x", node_selector={"topology.kubernetes.io/zones": "zone-a"}),
        f"no node has the label topology.kubernetes.io/zones; did you mean {ZONE} (3 nodes)?",
        f"node selector topology.kubernetes.io/zones=zone-a changed to {ZONE}=zone-a",
    ),
    "value of an affinity": Scenario(
        "NodeAffinity",
        NODES,
        make_pod("x", spec=in_any([(ZONE, "In", "zone-B")])),
        f"no node has {ZONE}=zone-B; 1 node has zone-b: did you mean that?",
        f"node affinity {ZONE} In zone-B changed to {ZONE} In zone-b",
    ),
    "value that no node comes near": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"disk": "hdd"})],
        make_pod("x", node_selector={"disk": "nvme"}),
        "no node has disk=nvme; nodes have hdd (1)",
        "label disk of node a set to nvme",
    ),
    "number that no node reaches": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"gen": "3"})],
        make_pod("x", spec=in_any([("gen", "Gt", "4")])),
        "no node has gen Gt 4; the largest value is 3",
        "label gen of node a set to 5",
    ),
    "values that no node has at once": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"disk": "ssd"}), make_node("b", labels={"rack": "7"})],
        make_pod("x", node_selector={"disk": "ssd", "rack": "7"}),
        "no node meets all conditions on labels: 1 node disk In ssd; 1 node rack In 7",
        "label disk=ssd added to node b",
    ),
    "node does not exist": Scenario(
        "NodeName",
        NODES,
        make_pod("x", spec={"nodeName": "n-1"}),
        "there is no node n-1; did you mean n1?",
        "nodeName changed to n1",
    ),
    "toleration is misspelt": Scenario(
        "TaintToleration",
        [make_node("a", taints=["dedicated=batch:NoSchedule"])],
        make_pod("x", tolerations=["dedicatd=batch:NoSchedule"]),
        "the toleration of dedicatd=batch:NoSchedule matches no taint of a node; did you mean "
        "dedicated=batch:NoSchedule (1 node)?",
        "toleration of dedicatd=batch:NoSchedule changed to dedicated=batch:NoSchedule",
    ),
    "taint": Scenario(
        "TaintToleration",
        [make_node("a", taints=["dedicated=batch:NoSchedule"])],
        make_pod("x"),
        "",
        "toleration of dedicated=batch:NoSchedule added",
    ),
    "cordoned": Scenario(
        "NodeUnschedulable", [make_node("a", unschedulable=True)], make_pod("x"), "", "node a uncordoned"
    ),
    "resource": Scenario(
        "NodeResourcesFit", [make_node("a", cpu=2)], make_pod("x", cpu=3), "", "request of cpu lowered from 3 to 2"
    ),
    "resource is misspelt": Scenario(
        "NodeResourcesFit",
        [make_node("a", resources={"nvidia.com/gpu": 4})],
        make_pod("x", resources={"nvidia.com/gpus": 1}),
        "no node has the resource nvidia.com/gpus; did you mean nvidia.com/gpu (1 node)?",
        "request of nvidia.com/gpus changed to nvidia.com/gpu",
    ),
    "feature that nodes do not declare": Scenario(
        "NodeDeclaredFeatures",
        [make_node("a")],
        make_pod("x", spec=RESTARTING),
        "the pod requires the node feature RestartAllContainersOnContainerExits, which is missing on 1 node: a",
        "node a updated to declare RestartAllContainersOnContainerExits",
    ),
    # Other pods
    "more replicas than zones": Scenario(
        "InterPodAffinity",
        [*NODES, *(replica(web(f"p{i}", node=f"n{i}")) for i in range(3)), replica(web("p3"))],
        replica(web("p4", spec=AWAY)),
        f"anti-affinity to pods app=web by {ZONE}: every zone has one already (zone-a has default/p0; zone-b has "
        "default/p1; zone-c has default/p2); 3 zones, 5 replicas",
        f"anti-affinity to pods app=web by {ZONE} made preferred",
    ),
    "anti-affinity of a pod that is there": Scenario(
        "InterPodAffinity",
        [NODES[0], make_pod("alone", node="n0", spec=AWAY, priority=9)],
        web("x"),
        "the anti-affinity of existing pods keeps it away from 1 of 1 zone (zone-a has default/alone)",
        "pod default/alone removed",
    ),
    "affinity to a misspelt label": Scenario(
        "InterPodAffinity",
        [*NODES, CACHE],
        make_pod("x", spec=NEAR_CACHE),
        f"affinity to pods app=chache by {ZONE}: no pod with a node in namespace default matches; did you mean "
        "app=cache?",
        f"affinity to pods app=chache by {ZONE}: app=chache changed to app=cache",
    ),
    "affinity to pods of another namespace": Scenario(
        "InterPodAffinity",
        [*NODES, make_pod("there", namespace="shop", labels=APP, node="n1")],
        make_pod("x", spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB)),
        f"affinity to pods app=web by {ZONE}: no pod with a node in namespace default matches; such pods are in "
        "namespace shop (1 pod)",
        f"affinity to pods app=web by {ZONE}: namespace shop added",
    ),
    "affinity with a misspelt namespace": Scenario(
        "InterPodAffinity",
        [*NODES, make_pod("there", namespace="shop", labels=APP, node="n1")],
        make_pod("x", spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB, namespaces=["shops"])),
        f"affinity to pods app=web by {ZONE}: there is no namespace shops; did you mean shop?",
        f"affinity to pods app=web by {ZONE}: namespace shops changed to shop",
    ),
    "affinity by a misspelt key": Scenario(
        "InterPodAffinity",
        [*NODES, web("there", node="n1")],
        make_pod("x", spec=required("podAffinity", topologyKey=f"{ZONE}s", labelSelector=WEB)),
        f"affinity to pods app=web by {ZONE}s: no node has the label {ZONE}s; did you mean {ZONE}?",
        f"affinity to pods app=web by {ZONE}s: key changed to {ZONE}",
    ),
    "affinity to pods on full nodes": Scenario(
        "InterPodAffinity",
        [make_node("a", zone="zone-a", cpu=1), NODES[1], web("there", node="a")],
        make_pod("x", cpu=2, spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB)),
        f"affinity to pods app=web by {ZONE}: zone-a has default/there; 1 node there: Insufficient cpu",
        "request of cpu lowered from 2 to 1",
    ),
    "spread": Scenario(
        "PodTopologySpread",
        [NODES[0], make_node("b", zone="zone-b", unschedulable=True), *(web(f"p{i}", node="n0") for i in range(2))],
        web("x", spec=spreading(ZONE)),
        f"spread of pods app=web by {ZONE}: zone-b has 0, zone-a has 2; maxSkew 1; zone-b is ruled out otherwise: "
        "node(s) were unschedulable",
        "node b uncordoned",
    ),
    "spread by a misspelt key": Scenario(
        "PodTopologySpread",
        NODES,
        web("x", spec=spreading(f"{ZONE}s")),
        f"spread of pods app=web by {ZONE}s: no node has the label {ZONE}s; did you mean {ZONE}?",
        f"spread of pods app=web by {ZONE}s: key changed to {ZONE}",
    ),
    "host port": Scenario(
        "NodePorts",
        [*NODES, *(make_pod(f"h{i}", node=f"n{i}", host_ports=[80]) for i in range(3))],
        make_pod("x", host_ports=[80]),
        "host port 80/TCP is taken on every node: n0 by default/h0; n1 by default/h1; n2 by default/h2",
        "host port 80/TCP removed",
    ),
    # Gates and groups
    "gate": Scenario("SchedulingGates", NODES, make_pod("x", gates=["wait"]), "", "scheduling gate wait removed"),
    "group does not exist": Scenario(
        "GangScheduling",
        [*NODES, make_pod_group("train", min_count=1)],
        make_pod("x", group="trian"),
        "there is no pod group trian in namespace default: create it; did you mean train?",
        "pod group changed to train",
    ),
    "group has too few pods": Scenario(
        "GangScheduling",
        [*NODES, make_pod_group("train", min_count=4)],
        make_pod("x", group="train"),
        "pod group default/train has 1 pod, and its minCount is 4",
        "minCount of pod group default/train lowered to 1",
    ),
    # Devices
    "resource claim is misspelt": Scenario(
        "DynamicResources",
        [make_node("a"), device_class(), device_slice("a", gpus(1)), device_claim("mine")],
        claiming("x", "mien"),
        'resourceclaim "mien" not found in namespace default: create it; existing: mine; did you mean mine?',
        "claim mien: resourceclaim mien changed to mine",
    ),
    "device class is misspelt": Scenario(
        "DynamicResources",
        [make_node("a"), device_class(), device_slice("a", gpus(1)), device_claim("mine", exactly(of="gpus"))],
        claiming("x", "mine"),
        'device class "gpus" of resourceclaim "mine" does not exist; existing: gpu; did you mean gpu?',
        "resource claim default/mine created again with device class gpu instead of gpus",
    ),
    "devices are taken": Scenario(
        "DynamicResources",
        [
            make_node("a"),
            device_class(),
            device_slice("a", gpus(1)),
            allocated("theirs", "a", "gpu-0"),
            device_claim("mine"),
        ],
        claiming("x", "mine"),
        'resourceclaim "mine" wants 1 of gpu: there is 1 device in 1 pool, 1 taken by default/theirs (1)',
        "resource claim default/theirs freed",
    ),
    "claim has devices elsewhere": Scenario(
        "DynamicResources",
        [
            make_node("a", cpu=1),
            make_node("b"),
            device_class(),
            device_slice("a", gpus(1)),
            allocated("mine", "a", "gpu-0"),
        ],
        claiming("x", "mine", cpu=2),
        'resourceclaim "mine" has a/gpu-0: other nodes cannot use it',
        "request of cpu lowered from 2 to 1",
    ),
}


def run_of(scenario: Scenario) -> DryRun:
    """Return the dry run of a scenario's pod."""
    world = World(scenario.setup, scenario.objects, 0.0)
    world.add_pending(scenario.pod)
    return DryRun(world, world.remove_for_scheduling(scenario.pod))
