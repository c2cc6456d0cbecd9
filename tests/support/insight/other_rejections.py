"""A pod for each rejection that another plugin hides by default, and for spelling mistakes in selectors of pods."""

import json
from typing import Any

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.node import Namespace
from kubestow.api.storage import StorageClass
from kubestow.config import Features
from kubestow.insight.explain.world import Setup
from kubestow.testing import make_composite_pod_group, make_node, make_pod, make_pod_group
from support.insight.objects import WEB, ZONE, in_any, required, spreading
from support.insight.rejections import ALL_GATES, CACHE, NODES, Scenario, db, web
from support.insight.storage import at, bound, claim, manual_class, storage_class, volume


def profile(**fields: Any) -> Setup:
    """Return a setup with one profile."""
    text = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [fields]}
    return Setup(config.load(json.dumps(text), ALL_GATES), ALL_GATES)


def without(*plugins: str) -> Setup:
    return profile(plugins={"multiPoint": {"disabled": [{"name": name} for name in plugins]}})


UNBOUND = without("VolumeBinding")
NAMES = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]
BY_NAMES = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": NAMES}]}
        }
    }
}
DISK_A = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
ENFORCED = profile(
    pluginConfig=[
        {
            "name": "NodeAffinity",
            "args": {
                "addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": DISK_A}}
            },
        }
    ]
)
SHOP = convert(Namespace, {"metadata": {"name": "shop", "labels": {"team": "shops"}}})
NEAR = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "cache"}}}
CAHCE = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["cahce"]}]}
ROLE = {"matchExpressions": [{"key": "cahce-role", "operator": "Exists"}]}
SCRATCH = {"volumes": [{"name": "s", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fsat"}}}}]}
GATES = Features(generic_workload=True, topology_aware_workload_scheduling=True, composite_pod_group=True)
TREES = Setup(config.default(GATES), GATES)
THREE_ZONES = spreading(ZONE)
THREE_ZONES["topologySpreadConstraints"][0]["minDomains"] = 3
NO_MODE = convert(StorageClass, {"metadata": {"name": "odd"}, "provisioner": "csi.example.com"})

OTHER_SCENARIOS = {
    "volume is gone": Scenario(
        "VolumeBinding",
        [*NODES, bound("data", "pv-1")],
        db(),
        'persistentvolumeclaim "data" is bound to persistentvolume "pv-1", which does not exist',
        "claim default/data deleted and created again, and a volume for it: 10Gi, ReadWriteOnce",
        without("VolumeZone"),
    ),
    "claim has no class, for VolumeZone": Scenario(
        "VolumeZone",
        [*NODES, claim("data", ""), storage_class("fast")],
        db(),
        'persistentvolumeclaim "data" has no volume and names no storageclass; existing: fast',
        "claim default/data created again with storageclass fast",
        UNBOUND,
    ),
    "class does not exist, for VolumeZone": Scenario(
        "VolumeZone",
        [*NODES, claim("data", "fsat"), storage_class("fast")],
        db(),
        'persistentvolumeclaim "data" has no volume, and its storageclass "fsat" does not exist; existing: fast; did '
        "you mean fast?",
        "claim default/data created again with storageclass fast",
        UNBOUND,
    ),
    "class has no mode": Scenario(
        "VolumeZone",
        [*NODES, claim("data", "odd"), NO_MODE, storage_class("fast")],
        db(),
        'persistentvolumeclaim "data": storageclass "odd" has no volumeBindingMode',
        "claim default/data created again with storageclass fast",
        UNBOUND,
    ),
    "claim is not bound yet, for VolumeZone": Scenario(
        "VolumeZone",
        [*NODES, claim("data", "now"), storage_class("now", "Immediate")],
        db(),
        'persistentvolumeclaim "data" has no volume yet: storageclass "now" binds at once, but csi.example.com made '
        "none",
        "a volume created for claim default/data: 10Gi, ReadWriteOnce, storageclass now",
        UNBOUND,
    ),
    "claim does not exist, for VolumeZone": Scenario(
        "VolumeZone",
        [*NODES, storage_class("fast")],
        db(),
        'persistentvolumeclaim "data" not found in namespace default: create it',
        "claim default/data created with storageclass fast",
        without("VolumeRestrictions", "VolumeBinding"),
    ),
    "claim has an empty name": Scenario(
        "VolumeZone",
        [*NODES, bound("data", "pv-1"), volume("pv-1")],
        make_pod("db", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]}),
        "volume v names no claim; existing: data",
        "volume v: claim set to data",
        without("VolumeRestrictions", "VolumeBinding"),
    ),
    "volumes in two zones": Scenario(
        "VolumeBinding",
        [
            *NODES,
            volume("pv-1", nodeAffinity=at(ZONE, "zone-a")),
            bound("data", "pv-1"),
            volume("pv-2", nodeAffinity=at(ZONE, "zone-b")),
            bound("logs", "pv-2"),
        ],
        make_pod("db", claims=["data", "logs"]),
        'persistentvolume "pv-1" of claim "data" can only be used by nodes with topology.kubernetes.io/zone=zone-a; '
        "1 node there (n0): node(s) didn't match PersistentVolume's node affinity",
        "volume pv-1 moved to topology.kubernetes.io/zone=zone-b",
    ),
    "profile enforces an affinity": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"disk": "hdd"})],
        make_pod("x"),
        "addedAffinity of profile default-scheduler requires disk In ssd, which no node has",
        "label disk of node a set to ssd",
        ENFORCED,
    ),
    "names that contradict each other": Scenario(
        "NodeAffinity",
        NODES,
        make_pod("x", spec=BY_NAMES),
        "no node meets all conditions on labels: 1 node metadata.name In n0; 1 node metadata.name In n1",
        "node affinity metadata.name In n0 removed",
    ),
    "label that excludes every node": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"virtual": ""})],
        make_pod("x", spec=in_any([("virtual", "DoesNotExist")])),
        "every node has the label virtual, which virtual DoesNotExist excludes; nodes have (empty) (1)",
        "label virtual removed from node a",
    ),
    "letters in the wrong order": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"disk": "ssd"})],
        make_pod("x", node_selector={"disk": "sds"}),
        "no node has disk=sds; 1 node has ssd: did you mean that?",
        "node selector disk=sds changed to disk=ssd",
    ),
    "affinity with a misspelt expression": Scenario(
        "InterPodAffinity",
        [*NODES, CACHE],
        make_pod("x", spec=required("podAffinity", topologyKey=ZONE, labelSelector=CAHCE)),
        "affinity to pods app In cahce by topology.kubernetes.io/zone: no pod with a node in namespace default "
        "matches; did you mean app=cache?",
        "affinity to pods app In cahce by topology.kubernetes.io/zone: app=cahce changed to app=cache",
    ),
    "affinity to itself with a misspelt label": Scenario(
        "InterPodAffinity",
        NODES,
        make_pod("x", labels={"app": "wbe"}, spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB)),
        "affinity to pods app=web by topology.kubernetes.io/zone: no pod with a node in namespace default matches; "
        "did you mean app=wbe?",
        "affinity to pods app=web by topology.kubernetes.io/zone: app=web changed to app=wbe",
    ),
    "affinity with a misspelt namespace selector": Scenario(
        "InterPodAffinity",
        [*NODES, SHOP, make_pod("c", namespace="shop", labels={"app": "cache"}, node="n1")],
        make_pod("x", spec=required("podAffinity", namespaceSelector={"matchLabels": {"team": "shop"}}, **NEAR)),
        "affinity to pods app=cache by topology.kubernetes.io/zone: namespace selector team=shop selects no "
        "namespace; did you mean team=shops?",
        "affinity to pods app=cache by topology.kubernetes.io/zone: namespace selector team=shop changed to team=shops",
    ),
    "affinity to a pod that is pending": Scenario(
        "InterPodAffinity",
        [*NODES, make_pod("c", labels={"app": "cache"}, gates=["wait"])],
        make_pod("x", spec=required("podAffinity", **NEAR)),
        "affinity to pods app=cache by topology.kubernetes.io/zone: no pod with a node in namespace default matches; "
        "default/c would, but is pending",
        "affinity to pods app=cache by topology.kubernetes.io/zone removed",
    ),
    "affinity that is invalid": Scenario(
        "InterPodAffinity",
        NODES,
        make_pod(
            "x",
            spec=required(
                "podAffinity",
                topologyKey=ZONE,
                labelSelector={"matchExpressions": [{"key": "app", "operator": "Inn", "values": ["a"]}]},
            ),
        ),
        "",
        "affinity to pods app Inn a by topology.kubernetes.io/zone removed",
    ),
    "fewer domains than required": Scenario(
        "PodTopologySpread",
        [*NODES[:2], *(web(f"p{i}", node=f"n{i}") for i in range(2))],
        web("x", spec=THREE_ZONES),
        "spread of pods app=web by topology.kubernetes.io/zone: zone-a has 1, zone-b has 1; maxSkew 1; with 2 zones "
        "and minDomains 3, the least counts as 0",
        "spread of pods app=web by topology.kubernetes.io/zone: minDomains lowered from 3 to 2",
    ),
    "parent of the group is misspelt": Scenario(
        "GangScheduling",
        [*NODES, make_composite_pod_group("tree"), make_pod_group("train", 1, parent="tere")],
        make_pod("x", group="train"),
        "pod group default/train is in no complete tree: failed to build hierarchy snapshot: parent composite pod "
        "group state not found for compositepodgroup/default/tere; did you mean tree?",
        "parent of pod group default/train changed from tere to tree",
        TREES,
    ),
    "tree has too few groups": Scenario(
        "GangScheduling",
        [*NODES, make_composite_pod_group("tree", 2), make_pod_group("train", 1, parent="tree")],
        make_pod("x", group="train"),
        "composite pod group tree has 1 group with enough pods, and it needs 2",
        "minGroupCount of composite pod group tree lowered to 1",
        TREES,
    ),
    "volume of another mode": Scenario(
        "VolumeBinding",
        [*NODES, manual_class("local"), claim("data", "local", volumeMode="Block"), volume("pv-1", "local")],
        db(),
        'persistentvolumeclaim "data" (10Gi, ReadWriteOnce, storageclass local): storageclass "local" provisions no '
        "volumes, and pv-1 is of volumeMode Filesystem",
        "a volume created for claim default/data: 10Gi, ReadWriteOnce, storageclass local",
    ),
    "volume with the beta label of another zone": Scenario(
        "VolumeZone",
        [*NODES, volume("pv-1", labels={"failure-domain.beta.kubernetes.io/zone": "zone-q"}), bound("data", "pv-1")],
        db(),
        'persistentvolume "pv-1" of claim "data" can only be used by nodes with '
        "failure-domain.beta.kubernetes.io/zone=zone-q; there is none",
        "volume pv-1 moved to failure-domain.beta.kubernetes.io/zone=zone-a",
    ),
    "ephemeral volume of a misspelt class": Scenario(
        "VolumeBinding",
        [*NODES, storage_class("fast")],
        make_pod("db", spec=SCRATCH),
        'persistentvolumeclaim "db-s" of the ephemeral volume s is not created yet; a controller creates it',
        "claim default/db-s created again with storageclass fast",
    ),
    "term without conditions": Scenario(
        "NodeAffinity",
        NODES,
        make_pod("x", spec=in_any([])),
        "a term of the node affinity has no conditions, so it matches no node",
        "node affinity removed",
    ),
    "another word for true": Scenario(
        "NodeAffinity",
        [make_node("a", labels={"gpu": "true"})],
        make_pod("x", node_selector={"gpu": "yes"}),
        "no node has gpu=yes; 1 node has true: did you mean that?",
        "node selector gpu=yes changed to gpu=true",
    ),
    "node that is not ready": Scenario(
        "TaintToleration",
        [make_node("a", taints=["node.kubernetes.io/not-ready:NoSchedule"])],
        make_pod("x"),
        "",
        "node a repaired, so that it has no taint node.kubernetes.io/not-ready:NoSchedule",
    ),
    "affinity to pods on nodes without the label": Scenario(
        "InterPodAffinity",
        [make_node("a"), make_node("b", zone="zone-b"), make_pod("c", labels={"app": "cache"}, node="a")],
        make_pod("x", spec=required("podAffinity", **NEAR)),
        "affinity to pods app=cache by topology.kubernetes.io/zone: pods match, but their nodes have no label "
        "topology.kubernetes.io/zone: a",
        "label topology.kubernetes.io/zone=zone-b added to node a",
    ),
    "affinity with a misspelt key of labels": Scenario(
        "InterPodAffinity",
        [*NODES, make_pod("c", labels={"cache-role": "x"}, node="n1")],
        make_pod("x", spec=required("podAffinity", topologyKey=ZONE, labelSelector=ROLE)),
        "affinity to pods cahce-role Exists by topology.kubernetes.io/zone: no pod with a node in namespace default "
        "matches; did you mean cache-role?",
        "affinity to pods cahce-role Exists by topology.kubernetes.io/zone: cahce-role changed to cache-role",
    ),
    "too many pods": Scenario(
        "NodeResourcesFit",
        [make_node("a", pods=1), make_pod("there", node="a", priority=9)],
        make_pod("x"),
        "",
        "pod limit of node a raised to 2",
    ),
    "node is full": Scenario(
        "NodeResourcesFit",
        [make_node("a", cpu=2), make_pod("there", cpu=2, node="a", priority=9)],
        make_pod("x", cpu=2),
        "",
        "2 more cpu on node a",
    ),
}
