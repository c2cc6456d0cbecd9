"""Translation of volumes of in-tree drivers into volumes of the CSI drivers that replaced them.

Each in-tree driver (`kubernetes.io/aws-ebs`, ...) has a CSI successor. A translated volume has the volume handle of the
successor, and the zone label of its node affinity is renamed to the one that the successor uses.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from kubestow.api.meta import ObjectMeta
from kubestow.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.storage import CSIVolume, PersistentVolume, VolumeNodeAffinity, VolumeSource
from kubestow.api.topology import LEGACY_REGION_LABEL, LEGACY_ZONE_LABEL, REGION_LABEL, ZONE_LABEL

AWS_EBS = "kubernetes.io/aws-ebs"
AZURE_DISK = "kubernetes.io/azure-disk"
AZURE_FILE = "kubernetes.io/azure-file"
CINDER = "kubernetes.io/cinder"
GCE_PD = "kubernetes.io/gce-pd"
PORTWORX = "kubernetes.io/portworx-volume"
VSPHERE = "kubernetes.io/vsphere-volume"

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: the in-tree drivers, comma-separated, whose volumes the node leaves to their successors."""

ZONE, REGION, BETA_ZONE, BETA_REGION = ZONE_LABEL, REGION_LABEL, LEGACY_ZONE_LABEL, LEGACY_REGION_LABEL
ZONE_DELIMITER = "__"
"""Separates the zones in the zone label of a volume that is in several zones."""


class TranslationError(ValueError):
    """A volume has no translation; the message gives the reason."""


class Successor(msgspec.Struct, frozen=True):
    """The CSI driver that replaced an in-tree driver."""

    field: str
    """The field of the volume source of the in-tree driver."""
    driver: str
    zone_label: str = ""
    """The zone label that the driver sets on nodes; "" if its volumes have no zone."""


SUCCESSORS: dict[str, Successor] = {
    AWS_EBS: Successor("awsElasticBlockStore", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    AZURE_DISK: Successor("azureDisk", "disk.csi.azure.com"),
    AZURE_FILE: Successor("azureFile", "file.csi.azure.com"),
    CINDER: Successor("cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    GCE_PD: Successor("gcePersistentDisk", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    PORTWORX: Successor("portworxVolume", "pxd.portworx.com"),
    VSPHERE: Successor("vsphereVolume", "csi.vsphere.vmware.com"),
}

MIGRATED = frozenset({AWS_EBS, AZURE_DISK, CINDER, GCE_PD, PORTWORX})
"""The in-tree drivers whose volumes the scheduler treats as those of their successors."""

_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = r"vol-[^/]*"


def old_driver(source: VolumeSource) -> str | None:
    """Return the in-tree driver of a pod's volume or a persistent volume; None if it is of another kind."""
    for driver, successor in SUCCESSORS.items():
        if getattr(source, successor.field) is not None:
            return driver
    return None


def inline_handle(source: VolumeSource) -> str:
    """Return the CSI handle of an inline volume whose in-tree driver was migrated to CSI. Raises TranslationError."""
    if source.gcePersistentDisk is not None:
        return _gce_handle("zones", _UNSPECIFIED, source.gcePersistentDisk.pdName)
    return _handle(source)


def translated(volume: PersistentVolume) -> PersistentVolume:
    """Translate a persistent volume of a migrated driver. Raises TranslationError."""
    spec, meta = volume.spec, volume.metadata
    driver = old_driver(spec)
    if driver not in MIGRATED:
        raise TranslationError(f'could not find in-tree plugin translation logic for "{meta.name}"')
    if spec.gcePersistentDisk is not None:
        handle = _gce_volume_handle(spec.gcePersistentDisk.pdName, meta)
    else:
        handle = _handle(spec)
    successor = SUCCESSORS[driver]
    affinity = spec.nodeAffinity
    if successor.zone_label:
        affinity = _translated_affinity(affinity, meta, successor.zone_label)
    old_fields = dict.fromkeys(SUCCESSORS[old].field for old in MIGRATED)
    csi = CSIVolume(successor.driver, handle)
    new_spec = replace(spec, **old_fields | {"csi": csi, "nodeAffinity": affinity})
    return replace(volume, spec=new_spec)


def _handle(source: VolumeSource) -> str:
    if source.awsElasticBlockStore is not None:
        return _ebs_handle(source.awsElasticBlockStore.volumeID)
    if source.azureDisk is not None:
        kind = source.azureDisk.kind
        if kind is not None and kind.lower() != "managed":
            raise TranslationError(f"kind({kind}) is not supported in csi migration")
        return source.azureDisk.diskURI
    if source.cinder is not None:
        return source.cinder.volumeID
    return source.portworxVolume.volumeID if source.portworxVolume is not None else ""


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    handle = urlsplit(volume_id).path.strip("/")
    if not re.fullmatch(_EBS_ID, handle):
        wrong = f"Invalid format for AWS volume ({volume_id})"
        raise TranslationError(f"failed to translate Kubernetes ID to EBS Volume ID {wrong}")
    return handle


def _gce_handle(kind: str, place: str, disk: str) -> str:
    return f"projects/{_UNSPECIFIED}/{kind}/{place}/disks/{disk}"


def _gce_volume_handle(disk: str, meta: ObjectMeta) -> str:
    zones = (meta.labels.get(BETA_ZONE) or meta.labels.get(ZONE) or "").split(ZONE_DELIMITER)
    if len(zones) > 1:
        return _gce_handle("regions", _gce_region(zones), disk)
    return _gce_handle("zones", zones[0] or _UNSPECIFIED, disk)


def _gce_region(zones: Iterable[str]) -> str:
    regions = set()
    for zone in zones:
        locale, *rest = zone.split("-")
        if len(rest) != 2:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add(f"{locale}-{rest[0]}")
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return regions.pop()


def _translated_affinity(
    affinity: VolumeNodeAffinity | None, meta: ObjectMeta, zone_label: str
) -> VolumeNodeAffinity | None:
    terms = affinity.required.nodeSelectorTerms if affinity is not None and affinity.required is not None else ()
    zone, region = _topology_labels(terms, meta)
    renamed = {}
    if any(_values(terms, zone)):
        renamed[zone] = zone_label
    elif zone in meta.labels:
        zones = {part.strip() for part in meta.labels[zone].split(ZONE_DELIMITER)} - {""}
        if zones:
            in_zones = NodeSelectorRequirement(zone_label, "In", tuple(sorted(zones)))
            terms = tuple(
                replace(term, matchExpressions=(*term.matchExpressions, in_zones))
                for term in terms or (NodeSelectorTerm(),)
            )
    if region == BETA_REGION and any(_values(terms, region)):
        renamed[region] = REGION
    if not terms:
        return affinity
    return VolumeNodeAffinity(NodeSelector(tuple(_with_labels_renamed(term, renamed) for term in terms)))


def _topology_labels(terms: Iterable[NodeSelectorTerm], meta: ObjectMeta) -> tuple[str, str]:
    """Return the zone and region label keys that a volume uses: those of its affinity, then those of its own labels."""
    keys = {expression.key for term in terms for expression in term.matchExpressions}
    for present in (keys, meta.labels):
        if ZONE in present:
            return ZONE, REGION
        if BETA_ZONE in present:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: Iterable[NodeSelectorTerm], key: str) -> Iterator[tuple[str, ...]]:
    return (expression.values for term in terms for expression in term.matchExpressions if expression.key == key)


def _with_labels_renamed(term: NodeSelectorTerm, names: dict[str, str]) -> NodeSelectorTerm:
    return replace(
        term,
        matchExpressions=tuple(
            replace(expression, key=names.get(expression.key, expression.key)) for expression in term.matchExpressions
        ),
    )
