"""One valid object of each resource."""

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

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
_REFERENCE = {"workloadName": "w", "templateName": "t"}
_AMOUNT = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
_REGARDING = {"kind": "Pod", "name": "a", "namespace": "default"}

_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}},
        "list": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    },
}
_ROLE_BINDING = {
    "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
    "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}],
}
_RULE = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
_MATCH = {"matchConstraints": {"resourceRules": [_RULE]}}
_MUTATION = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
_WEBHOOK = {
    "name": "w.example.com",
    "clientConfig": {"url": "https://example.com"},
    "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


def _certificate_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


_REQUEST = _certificate_request()

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
    "controllerrevisions.apps": {"revision": 1, "data": {"a": 1}},
    "jobs.batch": {
        "spec": {
            "template": {"spec": {**_SPEC, "restartPolicy": "Never"}},
            "scheduling": {"schedulingPolicy": {"gang": {"minCount": 1}}, "disruptionMode": {"all": {}}},
        }
    },
    "cronjobs.batch": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**_SPEC, "restartPolicy": "Never"}}}},
        }
    },
    "poddisruptionbudgets.policy": {"spec": {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}},
    "priorityclasses.scheduling.k8s.io": {"value": 5},
    "podgroups.scheduling.k8s.io": {
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "resourceClaims": [{"name": "c", "resourceClaimName": "d"}],
            "workloadRef": _REFERENCE,
        }
    },
    "compositepodgroups.scheduling.k8s.io": {
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "workloadRef": _REFERENCE}
    },
    "workloads.scheduling.k8s.io": {
        "spec": {
            "controllerRef": {"kind": "Job", "name": "j", "apiGroup": "batch"},
            "podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}],
        }
    },
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
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "c",
                            "tolerations": [{"key": "a", "operator": "Exists"}],
                            "derivedAttributes": [{"name": "d.example.com/model", "expression": "device.driver"}],
                        },
                    }
                ],
                "constraints": [{"requests": ["r"], "matchAttribute": "d.example.com/model"}],
                "config": [{"requests": ["r"], "opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
            }
        }
    },
    "resourceclaimtemplates.resource.k8s.io": {
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
    },
    "resourceslices.resource.k8s.io": {
        "spec": {
            "driver": "d.example.com",
            "nodeName": "a",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "a"}},
                    "allowMultipleAllocations": True,
                    "capacity": {
                        "m": {"value": "4", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}}},
                        "n": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}},
                    },
                    "consumesCounters": [
                        {"counterSet": "s", "counters": {"c": {"value": "1"}}, "compatibilityGroups": ["g"]}
                    ],
                    "taints": [{"key": "broken", "effect": "NoSchedule"}],
                    "bindingConditions": ["ready"],
                    "bindingFailureConditions": ["failed"],
                }
            ],
        }
    },
    "deviceclasses.resource.k8s.io": {
        "spec": {
            "selectors": [{"cel": {"expression": "true"}}],
            "extendedResourceName": "example.com/gpu",
            "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
        }
    },
    "devicetaintrules.resource.k8s.io": {
        "spec": {
            "deviceSelector": {"driver": "d.example.com", "pool": "p", "device": "a"},
            "taint": {"key": "broken", "effect": "NoSchedule"},
        }
    },
    "customresourcedefinitions.apiextensions.k8s.io": {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}}],
        }
    },
    "podtemplates": {"template": _TEMPLATE},
    "horizontalpodautoscalers.autoscaling": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}}
    },
    "volumeattributesclasses.storage.k8s.io": {"driverName": "d", "parameters": {"a": "b"}},
    "runtimeclasses.node.k8s.io": {"handler": "h", "overhead": {"podFixed": {"cpu": "1"}}},
    "ingresses.networking.k8s.io": {
        "spec": {
            "rules": [{"host": "h", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}}]
        }
    },
    "ingressclasses.networking.k8s.io": {"spec": {"controller": "example.com/c"}},
    "networkpolicies.networking.k8s.io": {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 80}]}]}},
    "servicecidrs.networking.k8s.io": {"spec": {"cidrs": ["10.0.0.0/16"]}},
    "ipaddresses.networking.k8s.io": {"spec": {"parentRef": {"resource": "services", "name": "a"}}},
    "roles.rbac.authorization.k8s.io": {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    "clusterroles.rbac.authorization.k8s.io": {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
    "rolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "certificatesigningrequests.certificates.k8s.io": {"spec": {"request": _REQUEST, "signerName": "example.com/s"}},
    "validatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {**_MATCH, "validations": [{"expression": "true"}]}
    },
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": {
        "spec": {"policyName": "a", "validationActions": ["Deny"]}
    },
    "mutatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {**_MATCH, "reinvocationPolicy": "Never", "mutations": [_MUTATION]}
    },
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": {"spec": {"policyName": "a"}},
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": [_WEBHOOK]},
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": [_WEBHOOK]},
    "apiservices.apiregistration.k8s.io": {
        "spec": {"group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    },
    "flowschemas.flowcontrol.apiserver.k8s.io": {"spec": {"priorityLevelConfiguration": {"name": "l"}}},
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}
    },
}
"""Objects by storage, without metadata."""

OTHER_NAMES = {
    "apiservices.apiregistration.k8s.io": "v1.example.com",
    "customresourcedefinitions.apiextensions.k8s.io": "things.example.com",
    "ipaddresses.networking.k8s.io": "10.0.0.1",
}
"""Names by storage, of objects that cannot be called `a`."""
