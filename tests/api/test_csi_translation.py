"""Translation of volumes of in-tree drivers to their CSI successors."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.csi_translation import TranslationError, inline_handle, old_driver, translated
from kubestow.api.storage import CSIVolume, PersistentVolume, VolumeSource

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def volume(labels: dict[str, str] | None = None, affinity: dict[str, list[str]] | None = None, **source: Any) -> Any:
    spec = dict(source)
    if affinity is not None:
        expressions = [{"key": key, "operator": "In", "values": values} for key, values in affinity.items()]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return convert(PersistentVolume, {"metadata": {"name": "v", "labels": labels or {}}, "spec": spec})


def affinity_of(found: PersistentVolume) -> dict[str, tuple[str, ...]] | None:
    if found.spec.nodeAffinity is None or found.spec.nodeAffinity.required is None:
        return None
    (term,) = found.spec.nodeAffinity.required.nodeSelectorTerms
    return {expression.key: expression.values for expression in term.matchExpressions}


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"azureDisk": {"diskURI": "/d", "kind": "managed"}}, "disk.csi.azure.com", "/d"),
        ({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p"),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
    ],
)
def test_volumes_get_the_handle_of_the_successor(source: dict[str, Any], driver: str, handle: str) -> None:
    """The same for a persistent volume and an inline volume of a pod."""
    found = translated(volume(**source))
    assert found.spec.csi == CSIVolume(driver, handle)
    assert old_driver(found.spec) is None
    assert inline_handle(convert(VolumeSource, source)) == handle


@pytest.mark.parametrize(
    ("zones", "handle"),
    [
        ("us-east1-a", "projects/UNSPECIFIED/zones/us-east1-a/disks/d"),
        ("us-east1-a__us-east1-b", "projects/UNSPECIFIED/regions/us-east1/disks/d"),
    ],
)
def test_a_gce_handle_has_the_zone_or_region_of_the_label(zones: str, handle: str) -> None:
    """A label with several zones of one region means a regional disk."""
    found = translated(volume({ZONE: zones}, gcePersistentDisk={"pdName": "d"}))
    assert found.spec.csi is not None
    assert found.spec.csi.volumeHandle == handle


@pytest.mark.parametrize(
    ("labels", "source", "message"),
    [
        ({}, {"awsElasticBlockStore": {"volumeID": "aws://z/odd"}}, r"Invalid format for AWS volume \(aws://z/odd\)"),
        ({}, {"azureDisk": {"diskURI": "/d", "kind": "Shared"}}, r"kind\(Shared\) is not supported in csi migration"),
        ({ZONE: "a__b"}, {"gcePersistentDisk": {"pdName": "d"}}, "zone in unexpected format"),
        ({ZONE: "x-y-a__x-z-a"}, {"gcePersistentDisk": {"pdName": "d"}}, "multiple or no regions gotten from zones"),
        ({}, {"vsphereVolume": {"volumePath": "p"}}, "could not find in-tree plugin translation logic"),
    ],
)
def test_volumes_without_a_translation_are_rejected(
    labels: dict[str, str], source: dict[str, Any], message: str
) -> None:
    """The message gives the reason."""
    with pytest.raises(TranslationError, match=message):
        translated(volume(labels, **source))


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        ({}, None, None),
        ({}, {"disk": ["ssd"]}, {"disk": ("ssd",)}),
        ({}, {ZONE: ["z1"]}, {"topology.ebs.csi.aws.com/zone": ("z1",)}),
        ({ZONE: "other"}, {BETA_ZONE: ["z1"]}, {"topology.ebs.csi.aws.com/zone": ("z1",)}),
        ({ZONE: "z2__z1"}, None, {"topology.ebs.csi.aws.com/zone": ("z1", "z2")}),
        ({BETA_ZONE: "z1"}, {"disk": ["ssd"]}, {"disk": ("ssd",), "topology.ebs.csi.aws.com/zone": ("z1",)}),
        (
            {},
            {BETA_ZONE: ["z1"], BETA_REGION: ["r"]},
            {"topology.ebs.csi.aws.com/zone": ("z1",), REGION: ("r",)},
        ),
        ({ZONE: "__"}, None, None),
    ],
)
def test_affinity_uses_the_zone_label_of_the_successor(
    labels: dict[str, str], affinity: dict[str, list[str]] | None, expected: dict[str, tuple[str, ...]] | None
) -> None:
    """The zone label of the affinity is renamed; without one, the volume's label becomes an affinity."""
    found = translated(volume(labels, affinity, awsElasticBlockStore={"volumeID": "vol-1"}))
    assert affinity_of(found) == expected
