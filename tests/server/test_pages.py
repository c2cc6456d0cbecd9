"""The pages besides health: their content and their list."""

import asyncio
import json

import pytest
import yaml

from kubestow.api import codec
from kubestow.api.pod import Pod
from kubestow.config import Features
from kubestow.server import cbor
from support.server.serving import Answer, Setting, served

MANIFESTS = """
- metadata: {name: p1, namespace: default}
  spec:
    nodeName: n1
    schedulerName: default-scheduler
    priority: 0
    initContainers:
      - {name: i, resources: {requests: {cpu: "2"}}}
      - {name: s, restartPolicy: Always, resources: {requests: {cpu: 100m}}}
    containers:
      - name: a
        resources:
          requests: {cpu: 500m, memory: 1Gi, example.com/gpu: 1}
          limits: {memory: 2Gi, example.com/gpu: 1}
      - {name: b, resources: {requests: {cpu: 250m}}}
    overhead: {memory: 1Gi, ephemeral-storage: 100m}
- metadata: {name: p3, namespace: default}
  spec:
    schedulerName: other
    resources: {requests: {cpu: "3"}, limits: {cpu: "4"}}
    containers:
      - name: a
        resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi}, requests: {cpu: 1, hugepages-2Mi: 4Mi, memory: 128M}}
- metadata: {name: done, namespace: default}
  spec: {nodeName: n1, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
  status: {phase: Succeeded}
"""
PODS = tuple(codec.decode(Pod, json.dumps(manifest).encode()) for manifest in yaml.safe_load(MANIFESTS))
_P1 = 'namespace="default",node="n1",pod="p1",priority="0"'
_P3 = 'namespace="default",node="",pod="p3",priority=""'
_HERE, _THERE = 'scheduler="default-scheduler"', 'scheduler="other"'
RESOURCES = f"""
kube_pod_resource_limit{{{_P3},resource="cpu",{_THERE},unit="cores"}} 4
kube_pod_resource_limit{{{_P3},resource="hugepages-2Mi",{_THERE},unit="bytes"}} 4.194304e+06
kube_pod_resource_limit{{{_P1},resource="example.com/gpu",{_HERE},unit=""}} 1
kube_pod_resource_limit{{{_P1},resource="memory",{_HERE},unit="bytes"}} 3.221225472e+09
kube_pod_resource_request{{{_P3},resource="cpu",{_THERE},unit="cores"}} 3
kube_pod_resource_request{{{_P3},resource="hugepages-2Mi",{_THERE},unit="bytes"}} 4.194304e+06
kube_pod_resource_request{{{_P3},resource="memory",{_THERE},unit="bytes"}} 1.28e+08
kube_pod_resource_request{{{_P1},resource="cpu",{_HERE},unit="cores"}} 2
kube_pod_resource_request{{{_P1},resource="ephemeral-storage",{_HERE},unit="bytes"}} 0.1
kube_pod_resource_request{{{_P1},resource="example.com/gpu",{_HERE},unit=""}} 1
kube_pod_resource_request{{{_P1},resource="memory",{_HERE},unit="bytes"}} 2.147483648e+09
"""


def _setting(**fields: object) -> Setting:
    setting = Setting(open_paths=("/*",))
    for name, value in fields.items():
        setattr(setting, name, value)
    return setting


def _ask(path: str, setting: Setting | None = None, **more: object) -> Answer:
    async def main() -> Answer:
        async with served(setting or _setting()) as reader:
            return await reader.get(path, **more)  # type: ignore[arg-type]

    return asyncio.run(main())


def test_metrics_in_both_formats() -> None:
    """Prometheus' text by default, OpenMetrics for clients that accept nothing else."""
    assert _ask("/metrics").content_type.startswith("text/plain; version=0.0.4")
    answer = _ask("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert answer.content_type.startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_health_checks_have_their_own_metrics_page() -> None:
    """They are at /metrics/slis once a check has run."""

    async def main() -> tuple[str, str]:
        async with served(_setting()) as reader:
            before = await reader.get("/metrics/slis")
            await reader.get("/livez")
            return before.text, (await reader.get("/metrics/slis")).text

    before, after = asyncio.run(main())
    assert "kubernetes_healthcheck" not in before
    assert "process_start_time_seconds" in before
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1\n' in after


def test_the_configuration() -> None:
    """In kube-scheduler's form, under componentconfig."""
    shown = json.loads(_ask("/configz").text)["componentconfig"]
    assert shown["kind"] == "KubeSchedulerConfiguration"
    assert shown["profiles"][0]["schedulerName"] == "default-scheduler"


def test_the_version() -> None:
    """The version of Kubernetes whose behaviour is reproduced."""
    shown = json.loads(_ask("/version").text)
    assert (shown["major"], shown["minor"]) == ("1", "37")
    assert shown["gitVersion"].startswith("v1.37")


def test_flags_as_text_and_as_json() -> None:
    """JSON only if the Accept header names the kind."""
    assert "\nsecure-port=10259\nv=4\n" in _ask("/flagz").text
    answer = _ask("/flagz", headers={"Accept": "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"})
    shown = json.loads(answer.text)
    assert (shown["kind"], shown["apiVersion"], shown["flags"]["v"]) == ("Flagz", "config.k8s.io/v1beta1", "4")
    assert answer.content_type == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    answer = _ask("/flagz", headers={"Accept": "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz"})
    assert yaml.safe_load(answer.text)["apiVersion"] == "config.k8s.io/v1alpha1"


@pytest.mark.parametrize("accept", ["application/json", "application/json;v=v9;g=config.k8s.io;as=Flagz", "image/png"])
def test_unsupported_formats(accept: str) -> None:
    """The error lists the supported formats."""
    answer = _ask("/flagz", headers={"Accept": accept})
    assert answer.status == 406
    assert "text/plain" in json.loads(answer.text)["message"]


def test_cbor_behind_a_feature_gate() -> None:
    """In the form of Kubernetes: tagged as CBOR, strings as bytes, keys in the order of their encoded form."""
    headers = {"Accept": "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz"}
    refused = _ask("/flagz", headers=headers)
    assert refused.status == 406
    accepted = "only the following media types are accepted: application/json, application/yaml, text/plain"
    assert json.loads(refused.text)["message"] == accepted
    setting = _setting(features=Features.parse("CBORServingAndStorage=true"))
    answer = _ask("/flagz", setting, headers=headers)
    assert answer.content_type == "application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz"
    assert answer.raw == (
        b"\xd9\xd9\xf7\xa4"
        b"\x44kind\x45Flagz"
        b"\x45flags\xa2\x41v\x414\x4bsecure-port\x4510259"
        b"\x48metadata\xa1\x44name\x4ekube-scheduler"
        b"\x4aapiVersion\x55config.k8s.io/v1beta1"
    )


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (255, "18ff"),
        (256, "190100"),
        (65536, "1a00010000"),
        (1 << 32, "1b0000000100000000"),
    ],
)
def test_numbers_in_cbor_are_short(number: int, written: str) -> None:
    assert cbor.encode(number).hex() == f"d9d9f7{written}"


def test_lists_in_cbor() -> None:
    assert cbor.encode({"a": ["b", "x" * 24]}).hex() == f"d9d9f7a14161824162{'5818'}{'78' * 24}"


def test_the_status() -> None:
    """The page contains the start time and the paths."""
    text = _ask("/statusz").text
    assert "Up: 0 hr 00 min 00 sec" in text
    assert "/metrics" in text
    answer = _ask("/statusz", headers={"Accept": "application/json; v=v1beta1; g=config.k8s.io; as=Statusz"})
    shown = json.loads(answer.text)
    assert shown["startTime"] == "2027-01-15T08:00:00Z"
    assert shown["binaryVersion"] == "1.37.0"
    assert shown["emulationVersion"] == "1.37"
    assert shown["paths"] == ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"]
    assert f"Paths: {' '.join(shown['paths'])}\n" in text


def test_requests_and_limits_of_pods() -> None:
    """As in kube-scheduler: sidecars, init containers, resources of the whole pod, limits, units."""
    page = _ask("/metrics/resources", _setting(pods=PODS)).text
    assert [line for line in page.splitlines() if not line.startswith("#")] == RESOURCES.strip().splitlines()


def test_only_the_leader_serves_requests_and_limits() -> None:
    """Otherwise they would be counted twice."""
    answer = _ask("/metrics/resources", _setting(pods=PODS, leads=False))
    assert (answer.status, answer.text) == (200, "")


def test_pages_behind_feature_gates() -> None:
    """Without the feature gate there is no page."""
    without = _setting(features=Features.parse("ComponentFlagz=false,ComponentStatusz=false"))
    assert _ask("/flagz", without).status == 404
    assert _ask("/statusz", without).status == 404


def test_no_such_page() -> None:
    """The error lists the pages."""
    answer = _ask("/nope")
    assert answer.status == 404
    assert "/metrics" in json.loads(answer.text)["message"]


def test_pages_are_read_only() -> None:
    """POST is rejected; HEAD is a GET without the body."""
    assert _ask("/metrics", method="POST").status == 405
    answer = _ask("/metrics", method="HEAD")
    assert (answer.status, answer.text) == (200, "")


def test_the_verbosity_can_be_changed() -> None:
    """By PUT of a number."""
    setting = _setting()
    assert _ask("/debug/flags/v", setting, method="PUT", body="5").status == 200
    assert setting.verbosities == [5]
    for wrong in ("much", "-1", "", "9999999999", "9" * 5000):
        assert _ask("/debug/flags/v", setting, method="PUT", body=wrong).status == 400
    assert setting.verbosities == [5]
