"""Volumes: sources, persistent volumes and claims, storage classes, CSI objects."""

from msgspec import Raw

from kubestow.api.meta import ApiObject, Base, LabelSelector, ObjectReference, RawQuantity, ResourceList
from kubestow.api.node import NodeSelector


class GCEPersistentDisk(Base, frozen=True):
    pdName: str = ""
    partition: int = 0
    readOnly: bool = False


class AWSElasticBlockStore(Base, frozen=True):
    volumeID: str = ""
    partition: int = 0
    readOnly: bool = False


class RBDVolume(Base, frozen=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    readOnly: bool = False


class ISCSIVolume(Base, frozen=True):
    targetPortal: str = ""
    iqn: str = ""
    lun: int = 0
    readOnly: bool = False


class AzureDisk(Base, frozen=True):
    diskName: str = ""
    diskURI: str = ""
    kind: str | None = None


class AzureFile(Base, frozen=True):
    shareName: str = ""
    secretName: str = ""
    secretNamespace: str | None = None


class CinderVolume(Base, frozen=True):
    volumeID: str = ""


class VsphereVolume(Base, frozen=True):
    volumePath: str = ""


class PortworxVolume(Base, frozen=True):
    volumeID: str = ""


class CSIVolume(Base, frozen=True):
    driver: str = ""
    volumeHandle: str = ""


class VolumeSource(Base, frozen=True):
    """The volume types that the scheduler distinguishes, in a pod's volume or a persistent volume."""

    gcePersistentDisk: GCEPersistentDisk | None = None
    awsElasticBlockStore: AWSElasticBlockStore | None = None
    rbd: RBDVolume | None = None
    iscsi: ISCSIVolume | None = None
    azureDisk: AzureDisk | None = None
    azureFile: AzureFile | None = None
    cinder: CinderVolume | None = None
    vsphereVolume: VsphereVolume | None = None
    portworxVolume: PortworxVolume | None = None
    csi: CSIVolume | None = None


class ClaimResources(Base, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ClaimSpec(Base, frozen=True):
    accessModes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ClaimResources = ClaimResources()
    volumeName: str = ""
    storageClassName: str | None = None
    volumeMode: str | None = None
    volumeAttributesClassName: str | None = None


class VolumeStatus(Base, frozen=True):
    """The status of a volume, or of a claim."""

    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True):
    spec: ClaimSpec = ClaimSpec()
    status: VolumeStatus = VolumeStatus()
    source: Raw = Raw()
    """The complete JSON as received: an update must send back the fields that are not read here."""


class VolumeNodeAffinity(Base, frozen=True):
    required: NodeSelector | None = None


class VolumeSpec(VolumeSource, frozen=True):
    capacity: ResourceList = {}
    accessModes: tuple[str, ...] = ()
    claimRef: ObjectReference | None = None
    storageClassName: str = ""
    volumeMode: str | None = None
    nodeAffinity: VolumeNodeAffinity | None = None
    volumeAttributesClassName: str | None = None


class PersistentVolume(ApiObject, frozen=True):
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()
    source: Raw = Raw()
    """The complete JSON as received: an update must send back the fields that are not read here."""


class TopologySelectorLabelRequirement(Base, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Base, frozen=True):
    matchLabelExpressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiObject, frozen=True):
    provisioner: str = ""
    volumeBindingMode: str | None = None
    allowedTopologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Base, frozen=True):
    count: int | None = None


class CSINodeDriver(Base, frozen=True):
    name: str = ""
    nodeID: str = ""
    topologyKeys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Base, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Base, frozen=True):
    storageCapacity: bool | None = None
    preventPodSchedulingIfMissing: bool | None = None


class CSIDriver(ApiObject, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True):
    storageClassName: str = ""
    nodeTopology: LabelSelector | None = None
    capacity: RawQuantity | None = None
    maximumVolumeSize: RawQuantity | None = None


class VolumeAttachmentSource(Base, frozen=True):
    persistentVolumeName: str | None = None
    inlineVolumeSpec: VolumeSpec | None = None


class VolumeAttachmentSpec(Base, frozen=True):
    attacher: str = ""
    nodeName: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Base, frozen=True):
    attached: bool = False


class VolumeAttachment(ApiObject, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
