"""One valid object of each resource, named `a`."""

from typing import Any

_LABELS = {"app": "a"}
_SPEC = {
    "containers": [
        {
            "name": "c",
            "image": "i:1",
            "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "value": "b"}],
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        }
    ],
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": _LABELS}}
            ]
        }
    },
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _SPEC}
_WORKLOAD = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
_AMOUNT = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
_REGARDING = {"kind": "Pod", "name": "a", "namespace": "default"}

SEEDS: dict[str, dict[str, Any]] = {
    "pods": {"spec": _SPEC},
    "nodes": {
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "4"},
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    "namespaces": {},
    "services": {"spec": {"ports": [{"port": 80}], "selector": _LABELS}},
    "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]},
    "configmaps": {"data": {"a": "b"}},
    "secrets": {"stringData": {"a": "b"}},
    "serviceaccounts": {},
    "persistentvolumes": {"spec": {**_AMOUNT, "hostPath": {"path": "/x"}}},
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "events": {"involvedObject": _REGARDING, "reason": "r", "message": "m", "type": "Normal"},
    "limitranges": {"spec": {"limits": [{"type": "Container"}]}},
    "resourcequotas": {"spec": {"hard": {"cpu": "1"}}},
    "replicationcontrollers": {"spec": {"template": _TEMPLATE}},
    "replicasets.apps": {"spec": _WORKLOAD},
    "deployments.apps": {"spec": _WORKLOAD},
    "statefulsets.apps": {"spec": {**_WORKLOAD, "serviceName": "s"}},
    "daemonsets.apps": {"spec": _WORKLOAD},
    "controllerrevisions.apps": {"revision": 1},
    "jobs.batch": {"spec": {"template": {"spec": {**_SPEC, "restartPolicy": "Never"}}}},
    "cronjobs.batch": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**_SPEC, "restartPolicy": "Never"}}}},
        }
    },
    "poddisruptionbudgets.policy": {"spec": {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}},
    "priorityclasses.scheduling.k8s.io": {"value": 5},
    "podgroups.scheduling.k8s.io": {"spec": {"schedulingPolicy": {"basic": {}}}},
    "workloads.scheduling.k8s.io": {"spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}]}},
    "storageclasses.storage.k8s.io": {"provisioner": "example.com/p"},
    "csinodes.storage.k8s.io": {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}},
    "csidrivers.storage.k8s.io": {"spec": {}},
    "csistoragecapacities.storage.k8s.io": {"storageClassName": "s", "capacity": "1Gi"},
    "volumeattachments.storage.k8s.io": {
        "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "a"}}
    },
    "leases.coordination.k8s.io": {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 15}},
    "endpointslices.discovery.k8s.io": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    "resourceclaims.resource.k8s.io": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    },
    "resourceclaimtemplates.resource.k8s.io": {
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
    },
    "resourceslices.resource.k8s.io": {
        "spec": {
            "driver": "d.example.com",
            "nodeName": "a",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        }
    },
    "deviceclasses.resource.k8s.io": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
}
"""Objects by storage, without metadata."""
