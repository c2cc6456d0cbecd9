"""Pods: the fields of spec and status that scheduling reads."""

from kubestow.api.meta import ApiObject, Base, LabelSelector, ObjectMeta, ResourceList
from kubestow.api.node import NodeSelector, NodeSelectorTerm
from kubestow.api.storage import ClaimSpec, VolumeSource

POD_SUCCEEDED = "Succeeded"
POD_FAILED = "Failed"


class ResourceRequirements(Base, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Base, frozen=True):
    containerPort: int = 0
    hostPort: int = 0
    hostIP: str = ""
    protocol: str = "TCP"


class ContainerRestartRule(Base, frozen=True):
    action: str = ""


class VolumeMount(Base, frozen=True):
    bindMountOptions: tuple[str, ...] = ()


class Container(Base, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restartPolicy: str | None = None
    restartPolicyRules: tuple[ContainerRestartRule, ...] = ()
    volumeMounts: tuple[VolumeMount, ...] = ()


class EphemeralVolumeTemplate(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()


class EphemeralVolume(Base, frozen=True):
    volumeClaimTemplate: EphemeralVolumeTemplate | None = None


class ClaimVolume(Base, frozen=True):
    claimName: str = ""
    readOnly: bool = False


class ImageVolume(Base, frozen=True):
    reference: str = ""


class Volume(VolumeSource, frozen=True):
    name: str = ""
    image: ImageVolume | None = None
    persistentVolumeClaim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class PreferredSchedulingTerm(Base, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Base, frozen=True):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None
    preferredDuringSchedulingIgnoredDuringExecution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Base, frozen=True):
    topologyKey: str = ""
    labelSelector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespaceSelector: LabelSelector | None = None
    matchLabelKeys: tuple[str, ...] = ()
    mismatchLabelKeys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Base, frozen=True):
    weight: int = 0
    podAffinityTerm: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Base, frozen=True):
    """Affinity or anti-affinity to other pods: both have the same shape."""

    requiredDuringSchedulingIgnoredDuringExecution: tuple[PodAffinityTerm, ...] = ()
    preferredDuringSchedulingIgnoredDuringExecution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Base, frozen=True):
    nodeAffinity: NodeAffinity | None = None
    podAffinity: PodAffinity | None = None
    podAntiAffinity: PodAffinity | None = None


class Toleration(Base, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    tolerationSeconds: int | None = None


class TopologySpreadConstraint(Base, frozen=True):
    maxSkew: int = 0
    topologyKey: str = ""
    whenUnsatisfiable: str = ""
    labelSelector: LabelSelector | None = None
    minDomains: int | None = None
    nodeAffinityPolicy: str | None = None
    nodeTaintsPolicy: str | None = None
    matchLabelKeys: tuple[str, ...] = ()


class PodSchedulingGate(Base, frozen=True):
    name: str = ""


class PodResourceClaim(Base, frozen=True):
    name: str = ""
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSchedulingGroup(Base, frozen=True):
    podGroupName: str | None = None


class PodSpec(Base, frozen=True):
    containers: tuple[Container, ...] = ()
    initContainers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    nodeName: str = ""
    nodeSelector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topologySpreadConstraints: tuple[TopologySpreadConstraint, ...] = ()
    schedulingGates: tuple[PodSchedulingGate, ...] = ()
    schedulerName: str = ""
    priority: int | None = None
    priorityClassName: str = ""
    preemptionPolicy: str | None = None
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    resourceClaims: tuple[PodResourceClaim, ...] = ()
    hostNetwork: bool = False
    hostUsers: bool | None = None
    restartPolicy: str = ""
    terminationGracePeriodSeconds: int | None = None
    schedulingGroup: PodSchedulingGroup | None = None


class PodCondition(Base, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observedGeneration: int = 0
    lastTransitionTime: str | None = None


class ContainerStatus(Base, frozen=True):
    name: str = ""
    allocatedResources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Base, frozen=True):
    name: str = ""
    resourceClaimName: str | None = None


class ContainerExtendedResourceRequest(Base, frozen=True):
    containerName: str = ""
    resourceName: str = ""
    requestName: str = ""


class PodExtendedResourceClaimStatus(Base, frozen=True):
    requestMappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resourceClaimName: str = ""


class PodStatus(Base, frozen=True):
    phase: str = ""
    nominatedNodeName: str = ""
    startTime: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    containerStatuses: tuple[ContainerStatus, ...] = ()
    initContainerStatuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocatedResources: ResourceList | None = None
    resourceClaimStatuses: tuple[PodResourceClaimStatus, ...] = ()
    extendedResourceClaimStatus: PodExtendedResourceClaimStatus | None = None


class Pod(ApiObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """The pod as namespace/name, as in messages."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
