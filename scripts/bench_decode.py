"""Benchmark of reading a pod: decoding 3 KB of JSON, compared with json.loads, and computing its requests."""

import json
from collections.abc import Iterator
from typing import Any

from bench_rows import Row, micros, seconds_per_call
from kubestow.api.codec import decode
from kubestow.api.pod import Pod
from kubestow.api.requests import pod_requests


def rows(_full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    data = json.dumps(typical_pod()).encode()
    with_null = json.dumps({**typical_pod(), "status": None}).encode()
    pod = decode(Pod, data)
    loads = seconds_per_call(lambda: json.loads(data))
    typed = seconds_per_call(lambda: decode(Pod, data))
    size = f"{len(data)} bytes"
    yield micros("json.loads of a pod, to dicts", loads, size)
    yield micros("decode of it, to a typed Pod", typed, f"{loads / typed:.1f}x as fast as json.loads")
    yield micros("decode of it with a null", seconds_per_call(lambda: decode(Pod, with_null)), "decoded twice")
    yield micros("pod_requests", seconds_per_call(lambda: pod_requests(pod)), "one container")


def typical_pod() -> dict[str, Any]:
    """Return a pod of a Deployment as sent by an API server, without its managed fields: about 3 KB."""
    token = {
        "name": "kube-api-access-7xk2p",
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.namespace"}, "path": "namespace"}]}},
            ],
        },
    }
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    container = {
        "name": "web",
        "image": "registry.example.com/shop/web:2026.1.7",
        "args": ["--listen=0.0.0.0:8080", "--log-format=json", "--backend=http://orders.shop.svc:8080"],
        "env": [
            {"name": f"SETTING_{i}", "valueFrom": {"configMapKeyRef": {"name": "web", "key": f"setting-{i}"}}}
            for i in range(6)
        ],
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token["name"]}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
    }
    evictions = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for why in ("not-ready", "unreachable")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-6f7d9c5b48-x2x9z",
            "generateName": "web-6f7d9c5b48-",
            "namespace": "shop",
            "uid": "4b1f7a52-8f0e-4c8e-9a53-9d1f0c1f7b11",
            "resourceVersion": "184467",
            "creationTimestamp": "2026-01-31T12:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "web",
                "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": "6f7d",
            },
            "annotations": {"example.com/config-hash": "9b74c9897bac770ffc029102a200c5de"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-6f7d9c5b48",
                    "uid": "0c9a2f0e-5d5c-4a0f-a1ab-1f5a9f3c2a77",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "containers": [container],
            "volumes": [token],
            "tolerations": evictions,
            "topologySpreadConstraints": [spread],
            "schedulerName": "default-scheduler",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "serviceAccountName": "web",
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "enableServiceLinks": True,
            "securityContext": {"runAsNonRoot": True},
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
