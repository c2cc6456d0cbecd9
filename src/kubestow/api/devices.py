"""Kinds of dynamic resource allocation: claims, slices with devices, device classes."""

from msgspec import Raw

from kubestow.api.meta import ApiObject, Base, ObjectMeta, RawQuantity
from kubestow.api.node import NodeCondition, NodeSelector
from kubestow.api.pod import Toleration

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that the scheduler has created for the extended resources of a pod."""


class CELDeviceSelector(Base, frozen=True):
    expression: str = ""


class DeviceSelector(Base, frozen=True):
    cel: CELDeviceSelector | None = None


# The API has separate types with the same fields.
DeviceToleration = Toleration
DeviceCondition = NodeCondition


class CapacityRequirements(Base, frozen=True):
    requests: dict[str, RawQuantity] = {}


class DeviceDerivedAttribute(Base, frozen=True):
    name: str = ""
    expression: str = ""


class ExactDeviceRequest(Base, frozen=True):
    deviceClassName: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocationMode: str = ""
    count: int = 0
    adminAccess: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derivedAttributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Base, frozen=True):
    name: str = ""
    deviceClassName: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocationMode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derivedAttributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Base, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    firstAvailable: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Base, frozen=True):
    requests: tuple[str, ...] = ()
    matchAttribute: str | None = None
    distinctAttribute: str | None = None


class OpaqueConfiguration(Base, frozen=True):
    driver: str = ""
    parameters: Raw = Raw()


class DeviceConfiguration(Base, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Base, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Base, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Base, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    adminAccess: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    bindingConditions: tuple[str, ...] = ()
    bindingFailureConditions: tuple[str, ...] = ()
    shareID: str | None = None
    consumedCapacity: dict[str, RawQuantity] = {}
    skipNodeOperations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Base, frozen=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocationResult(Base, frozen=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Base, frozen=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    nodeSelector: NodeSelector | None = None
    allocationTimestamp: str | None = None


class ResourceClaimConsumer(Base, frozen=True):
    apiGroup: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Base, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    shareID: str | None = None
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Base, frozen=True):
    allocation: AllocationResult | None = None
    reservedFor: tuple[ResourceClaimConsumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiObject, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
    source: Raw = Raw()
    """The complete JSON as received or sent: an update must send back the fields that are not read here."""


class ResourceClaimTemplateSpec(Base, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Base, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extendedResourceName: str | None = None


class DeviceClass(ApiObject, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Base, frozen=True, rename={"integer": "int", "boolean": "bool"}):
    """The value of an attribute; exactly one field is set."""

    string: str | None = None
    integer: int | None = None
    boolean: bool | None = None
    version: str | None = None
    strings: tuple[str, ...] | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Base, frozen=True):
    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(Base, frozen=True):
    default: RawQuantity | None = None
    validValues: tuple[RawQuantity, ...] = ()
    validRange: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Base, frozen=True):
    value: RawQuantity = "0"
    requestPolicy: CapacityRequestPolicy | None = None


class DeviceTaint(Base, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    timeAdded: str | None = None


class Counter(Base, frozen=True):
    value: RawQuantity = "0"


class DeviceCounterConsumption(Base, frozen=True):
    counterSet: str = ""
    counters: dict[str, Counter] = {}
    compatibilityGroups: tuple[str, ...] = ()


class Device(Base, frozen=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumesCounters: tuple[DeviceCounterConsumption, ...] = ()
    nodeName: str | None = None
    nodeSelector: NodeSelector | None = None
    allNodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    bindsToNode: bool | None = None
    bindingConditions: tuple[str, ...] = ()
    bindingFailureConditions: tuple[str, ...] = ()
    allowMultipleAllocations: bool | None = None


class CounterSet(Base, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class ResourcePool(Base, frozen=True):
    name: str = ""
    generation: int = 0
    resourceSliceCount: int = 0


class ResourceSliceSpec(Base, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    nodeName: str | None = None
    nodeSelector: NodeSelector | None = None
    allNodes: bool | None = None
    perDeviceNodeSelection: bool | None = None
    devices: tuple[Device, ...] = ()
    sharedCounters: tuple[CounterSet, ...] = ()
    partitionTypeAttribute: str | None = None
    skipNodeOperations: tuple[str, ...] = ()


class ResourceSlice(ApiObject, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Base, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Base, frozen=True):
    deviceSelector: DeviceTaintSelector | None = None
    """An empty one selects all devices; None selects all for the scheduler, and none otherwise."""
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiObject, frozen=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
