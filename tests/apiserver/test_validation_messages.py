"""Validation of common kinds, with the messages of kube-apiserver v1.36."""

import copy
from typing import Any

import pytest

from support.apiserver.running import Client, pod

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
NETWORK = "/apis/networking.k8s.io/v1/namespaces/default"
CONTAINER = {"name": "c", "image": "i"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
INDEXED = {"completionMode": "Indexed", "completions": 3}
ZERO = "must be greater than or equal to 0"
PORT = "must be between 1 and 65535, inclusive"


def refused(client: Client, path: str, body: dict[str, Any]) -> str:
    """Return the message of a rejected write, without the name of the object."""
    body = {"metadata": {"name": "x"}, **copy.deepcopy(body)}
    status, answer = client.call("POST", f"{path}?dryRun=All", body)
    assert status == 422, answer
    message: str = answer["message"].split(" is invalid: ", 1)[1]
    return message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ports": [{"name": "a"}]}, "ports[0].containerPort: Required value"),
        ({"ports": [{"containerPort": 80, "hostPort": 70000}]}, f"ports[0].hostPort: Invalid value: 70000: {PORT}"),
        (
            {"ports": [{"containerPort": 80, "hostPort": 8}, {"containerPort": 81, "hostPort": 8}]},
            'ports[1].hostPort: Duplicate value: "TCP//8"',
        ),
        ({"env": [{"value": "x"}]}, "env[0].name: Required value"),
        (
            {"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.foo"}}}]},
            (
                'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.foo": '
                "error converting fieldPath: field label not supported: metadata.foo"
            ),
        ),
        (
            {"envFrom": [{}]},
            'envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
        ),
        (
            {"resources": {"requests": {"a.b/c": "1"}}},
            "resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            {"resources": {"requests": {"a.b/c": "1"}, "limits": {"a.b/c": "2"}}},
            'resources.requests: Invalid value: "1": must be equal to a.b/c limit of 2',
        ),
        (
            {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
            "resources: Forbidden: HugePages require cpu or memory",
        ),
        (
            {"resources": {"claims": [{"name": "x"}]}},
            'resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty',
        ),
        ({"livenessProbe": {}}, "livenessProbe: Required value: must specify a handler type"),
        (
            {"livenessProbe": {"tcpSocket": {"port": 80}, "successThreshold": 2}},
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {"readinessProbe": {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}},
            "readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"lifecycle": {"preStop": {"sleep": {"seconds": 100}}}},
            (
                "lifecycle.preStop.sleep: Invalid value: 100: "
                "must be non-negative and less than terminationGracePeriodSeconds (30)"
            ),
        ),
        ({"volumeMounts": [{"name": "v", "mountPath": "/"}]}, 'volumeMounts[0].name: Not found: "v"'),
        (
            {"imagePullPolicy": "Now"},
            'imagePullPolicy: Unsupported value: "Now": supported values: "Always", "IfNotPresent", "Never"',
        ),
        ({"image": " i"}, 'image: Invalid value: " i": must not have leading or trailing whitespace'),
        (
            {"securityContext": {"runAsUser": -1}},
            "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
    ],
)
def test_containers(client: Client, change: dict[str, Any], expected: str) -> None:
    """Ports, environment, resources, probes, hooks, mounts."""
    spec = {"containers": [{**CONTAINER, **change}]}
    assert refused(client, f"{CORE}/pods", {"spec": spec}) == f"spec.containers[0].{expected}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        ({"volumes": [{"name": "v", "configMap": {}}]}, "volumes[0].configMap.name: Required value"),
        ({"dnsPolicy": "None"}, "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
        (
            {"tolerations": [{"key": "k", "operator": "Is"}]},
            'tolerations[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"',
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, 'schedulingGates[1]: Duplicate value: "a"'),
        (
            {"hostAliases": [{"ip": "x"}]},
            'hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        ({"os": {"name": "a"}}, 'os: Unsupported value: "a": supported values: "linux", "windows"'),
        (
            {"initContainers": [{"name": "i", "image": "i", "startupProbe": {}}]},
            (
                "initContainers[0].startupProbe: Forbidden: "
                "may not be set for init containers without restartPolicy=Always"
            ),
        ),
        (
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}
                ]
            },
            (
                "topologySpreadConstraints[0].matchLabelKeys: Forbidden: "
                "must not be specified when labelSelector is not set"
            ),
        ),
        (
            {"resourceClaims": [{"name": "x"}]},
            (
                'resourceClaims[0]: Invalid value: {"name":"x"}: '
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            ),
        ),
        ({"hostUsers": False, "hostPID": True}, "hostPID: Forbidden: when `hostUsers` is false"),
        (
            {"shareProcessNamespace": True, "hostPID": True},
            (
                "securityContext.shareProcessNamespace: Invalid value: true: "
                "ShareProcessNamespace and HostPID cannot both be enabled"
            ),
        ),
        (
            {"readinessGates": [{"conditionType": "a b"}]},
            (
                'readinessGates[0].conditionType: Invalid value: "a b": name part must consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName', "
                " or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ),
        ),
    ],
)
def test_pods(client: Client, change: dict[str, Any], expected: str) -> None:
    """Volumes, gates, tolerations and the rest of a spec."""
    assert refused(client, f"{CORE}/pods", {"spec": {"containers": [CONTAINER], **change}}) == f"spec.{expected}"


@pytest.mark.parametrize(
    ("plural", "change", "expected"),
    [
        (
            "deployments",
            {"selector": {"matchLabels": {"x": "y"}}},
            'template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        ),
        ("deployments", {"selector": {}}, "selector: Invalid value: {}: empty selector is invalid for deployment"),
        ("deployments", {"minReadySeconds": -1}, f"minReadySeconds: Invalid value: -1: {ZERO}"),
        (
            "deployments",
            {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
            "progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
        ),
        (
            "deployments",
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            "strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            "deployments",
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            "deployments",
            {"strategy": {"rollingUpdate": {"maxUnavailable": "120%"}}},
            'strategy.rollingUpdate.maxUnavailable: Invalid value: "120%": must not be greater than 100%',
        ),
        (
            "daemonsets",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}},
            "updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ),
        (
            "statefulsets",
            {"podManagementPolicy": "None"},
            "podManagementPolicy: Invalid value: \"None\": must be 'OrderedReady' or 'Parallel'",
        ),
        (
            "statefulsets",
            {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]},
            "volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ),
    ],
)
def test_workloads(client: Client, plural: str, change: dict[str, Any], expected: str) -> None:
    """Selectors, strategies and claims."""
    assert refused(client, f"{APPS}/{plural}", {"spec": {**WORKLOAD, **change}}) == f"spec.{expected}"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "[spec.selector: Required value, spec.template: Required value]"),
        ({"template": {"spec": {"containers": [CONTAINER]}}}, "spec.selector: Required value"),
        ({"selector": {"x": "y"}}, "spec.template: Required value"),
        (
            {"selector": {"x": "y"}, "template": TEMPLATE},
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        ),
    ],
)
def test_replication_controllers(client: Client, spec: dict[str, Any], expected: str) -> None:
    """Their selectors are plain labels."""
    assert refused(client, f"{CORE}/replicationcontrollers", {"spec": spec}) == expected


def test_replication_controllers_are_labelled_like_their_pods(client: Client) -> None:
    """Missing selectors and labels are set from the template."""
    body = {"metadata": {"name": "rc"}, "spec": {"selector": {}, "template": TEMPLATE}}
    made = client.create(f"{CORE}/replicationcontrollers", body)
    assert made["metadata"]["labels"] == made["spec"]["selector"] == {"a": "b"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ttlSecondsAfterFinished": -1}, f"ttlSecondsAfterFinished: Invalid value: -1: {ZERO}"),
        ({"backoffLimitPerIndex": 1}, "backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
        (
            {**INDEXED, "parallelism": 200_000},
            "parallelism: Invalid value: 200000: must be less than or equal to 100000 when completion mode is Indexed",
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}},
            "podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
        (
            {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "0-9"}]}},
            (
                'successPolicy.rules[0].succeededIndexes: Invalid value: "0-9": '
                'error parsing succeededIndexes: too large index: "9"'
            ),
        ),
        ({"managedBy": "x"}, 'managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")'),
    ],
)
def test_jobs(client: Client, change: dict[str, Any], expected: str) -> None:
    """Counts, indexes and policies."""
    assert refused(client, f"{BATCH}/jobs", {"spec": {**JOB, **change}}) == f"spec.{expected}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"schedule": ""}, "schedule: Required value"),
        ({"schedule": "* * * *"}, 'schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'),
        ({"schedule": "61 * * * *"}, 'schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'),
        ({"timeZone": "Foo/Bar"}, 'timeZone: Invalid value: "Foo/Bar": unknown time zone Foo/Bar'),
    ],
)
def test_cron_jobs(client: Client, change: dict[str, Any], expected: str) -> None:
    """Schedules and time zones are validated."""
    spec = {"schedule": "@daily", "jobTemplate": {"spec": JOB}, **change}
    assert refused(client, f"{BATCH}/cronjobs", {"spec": spec}) == f"spec.{expected}"


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (f"{CORE}/services", {"spec": {}}, "spec.ports: Required value"),
        (
            f"{CORE}/services",
            {"spec": {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}},
            "spec.ports[0].name: Required value",
        ),
        (f"{CORE}/services", {"spec": {"type": "ExternalName"}}, "spec.externalName: Required value"),
        (
            f"{CORE}/services",
            {"spec": {"ports": [{"port": 1, "nodePort": 30080}]}},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (f"{CORE}/secrets", {"type": "kubernetes.io/ssh-auth"}, "data[ssh-privatekey]: Required value"),
        (
            f"{CORE}/configmaps",
            {"data": {"a": "b"}, "binaryData": {"a": "eA=="}},
            'data[a]: Invalid value: "a": duplicate of key present in binaryData',
        ),
        (f"{CORE}/configmaps", {"data": {"a": "x" * (2**20 + 1)}}, "[]: Too long: may not be more than 1048576 bytes"),
        (
            f"{CORE}/resourcequotas",
            {"spec": {"hard": {"pods": "1.5"}}},
            'spec.hard[pods]: Invalid value: "1500m": must be an integer',
        ),
        (
            f"{CORE}/resourcequotas",
            {"spec": {"scopes": ["Terminating", "NotTerminating"]}},
            'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
        ),
        (
            f"{CORE}/limitranges",
            {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}},
            'spec.limits[1].type: Duplicate value: "Pod"',
        ),
        (
            "/api/v1/persistentvolumes",
            {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}},
            "spec: Required value: must specify a volume type",
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            {"rules": [{"verbs": ["get"], "apiGroups": [""]}]},
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ),
        (
            f"{NETWORK}/ingresses",
            {"spec": {"defaultBackend": {"service": {"name": "s"}}}},
            "spec.defaultBackend: Required value: port name or number is required",
        ),
        (
            f"{NETWORK}/networkpolicies",
            {"spec": {"ingress": [{"from": [{}]}]}},
            "spec.ingress[0].from[0]: Required value: must specify a peer",
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"spec": {"minAvailable": "150%"}},
            'spec.minAvailable: Invalid value: "150%": must not be greater than 100%',
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            {
                "spec": {
                    "maxReplicas": 1,
                    "scaleTargetRef": {"apiVersion": "a/v1", "kind": "D", "name": "d"},
                    "metrics": [{"type": "Resource"}],
                }
            },
            "spec.metrics[0].resource: Required value: must populate information for the given metric source",
        ),
    ],
)
def test_other_kinds(client: Client, path: str, body: dict[str, Any], expected: str) -> None:
    """Services, configuration, limits, volumes, access, networks."""
    assert refused(client, path, body) == expected


IMMUTABLE = "field is immutable when `immutable` is set"


@pytest.mark.parametrize(
    ("path", "body", "change", "expected"),
    [
        (
            f"{CORE}/configmaps",
            {"data": {"a": "b"}, "immutable": True},
            {"data": {"a": "c"}},
            f"data: Forbidden: {IMMUTABLE}",
        ),
        (f"{CORE}/secrets", {"immutable": True}, {"immutable": False}, f"immutable: Forbidden: {IMMUTABLE}"),
        (f"{CORE}/secrets", {}, {"type": "other"}, 'type: Invalid value: "other": field is immutable'),
        (
            f"{CORE}/services",
            {"spec": {"ports": [{"port": 1}]}},
            {"spec": {"clusterIP": "10.96.0.99", "clusterIPs": None}},
            'spec.clusterIPs[0]: Invalid value: ["10.96.0.99"]: may not change once set',
        ),
        (
            f"{APPS}/statefulsets",
            {"spec": WORKLOAD},
            {"spec": {"serviceName": "other"}},
            (
                "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                "'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' "
                "and 'minReadySeconds' are forbidden"
            ),
        ),
        (
            f"{BATCH}/jobs",
            {"spec": JOB},
            {"spec": {"completions": 3}},
            "spec.completions: Invalid value: 3: field is immutable",
        ),
        (
            f"{CORE}/pods",
            {"spec": pod()["spec"]},
            {"spec": {"initContainers": [CONTAINER]}},
            "spec.initContainers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            "/apis/node.k8s.io/v1/runtimeclasses",
            {"handler": "h"},
            {"handler": "g"},
            'handler: Invalid value: "g": field is immutable',
        ),
    ],
)
def test_immutable_fields(
    client: Client, path: str, body: dict[str, Any], change: dict[str, Any], expected: str
) -> None:
    """Fields that cannot change after creation."""
    client.create(path, {"metadata": {"name": "x"}, **copy.deepcopy(body)})
    status, answer = client.call("PATCH", f"{path}/x", change, content_type="application/merge-patch+json")
    assert (status, answer["message"].split(" is invalid: ", 1)[1]) == (422, expected)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"capacity": {"cpu": "-4"}, "allocatable": {}}, f'status.capacity.cpu: Invalid value: "-4": {ZERO}'),
        ({"allocatable": {"memory": "-1Gi"}}, f'status.allocatable.memory: Invalid value: "-1Gi": {ZERO}'),
        ({"allocatable": {"a.b/c": "1.5"}}, 'status.allocatable.a.b/c: Invalid value: "1500m": must be an integer'),
        ({"allocatable": {"pods": "1500m"}}, 'status.allocatable.pods: Invalid value: "1500m": must be an integer'),
    ],
)
def test_the_resources_of_nodes(client: Client, reported: dict[str, Any], expected: str) -> None:
    """Amounts cannot be negative; allocatable resources default to the capacity."""
    whole = client.create("/api/v1/nodes?dryRun=All", {"metadata": {"name": "y"}, "status": {"capacity": {"cpu": "4"}}})
    assert whole["status"]["allocatable"] == {"cpu": "4"}
    assert refused(client, "/api/v1/nodes", {"status": reported}) == expected
    client.create("/api/v1/nodes", {"metadata": {"name": "x"}})
    merge = "application/merge-patch+json"
    status, answer = client.call("PATCH", "/api/v1/nodes/x/status", {"status": reported}, content_type=merge)
    assert (status, answer["message"].split(" is invalid: ", 1)[1]) == (422, expected)
