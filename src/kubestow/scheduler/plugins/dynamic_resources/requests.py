"""Compiled claims: the input of the search.

A request has one option (`exactly`), or a list of alternatives of which the first feasible one is chosen
(`firstAvailable`). Results of an option for a device depend only on the content of the device and are cached.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from kubestow.api.devices import (
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubestow.api.tolerations import tolerates_device
from kubestow.config.features import Features
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.cluster.listers import Store, key_of
from kubestow.scheduler.plugins.dynamic_resources.capacity import CapacityError, Consumption, consumption_of
from kubestow.scheduler.plugins.dynamic_resources.constraints import Constraint
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError
from kubestow.scheduler.plugins.dynamic_resources.selection import Selection, Selectors

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.dynamic_resources.derived import DerivedAttribute

MAX_RESULTS = 32
"""Maximum number of devices of a claim."""


class Option:
    """One way to satisfy a request."""

    def __init__(
        self,
        request: str,
        spec: ExactDeviceRequest | DeviceSubRequest,
        device_class: DeviceClass,
        selection: Selection,
        rank: int,
        *,
        fractional: bool,
    ) -> None:
        """`fractional`: whether ranges of capacities can be fractional."""
        self.request = request
        self.name = f"{request}/{spec.name}" if isinstance(spec, DeviceSubRequest) else request
        self.own_name = spec.name if isinstance(spec, DeviceSubRequest) else request
        self.device_class = device_class
        self.tolerations: tuple[DeviceToleration, ...] = spec.tolerations
        self.all_devices = spec.allocationMode == "All"
        self.count = spec.count
        self.admin = isinstance(spec, ExactDeviceRequest) and bool(spec.adminAccess)
        self.selection = selection
        self.derived = _derived(spec)
        """The attributes that it derives for constraints, by name."""
        self.rank = rank
        """Its index among the alternatives."""
        self.constraints: tuple[int, ...] = ()
        """The numbers of the claim's constraints that its devices must satisfy."""
        self._wanted = {} if spec.capacity is None else spec.capacity.requests
        self._fractional = fractional
        self._consumption: dict[int, Consumption | CapacityError | None] = {}

    def consumption(self, entry: DeviceEntry) -> Consumption | None:
        """Return what it consumes of a device's capacities; None if it does not fit. Raises CapacityError."""
        if entry.content not in self._consumption:
            self._consumption[entry.content] = self._compute_consumption(entry)
        known = self._consumption[entry.content]
        if isinstance(known, CapacityError):
            raise known
        return known

    def _compute_consumption(self, entry: DeviceEntry) -> Consumption | CapacityError | None:
        try:
            return consumption_of(self._wanted, entry.device.capacity, fractional=self._fractional)
        except CapacityError as error:
            return error

    def tolerates(self, entry: DeviceEntry) -> bool:
        return all(
            any(tolerates_device(toleration, taint) for toleration in self.tolerations) for taint in entry.taints
        )


def _derived(spec: ExactDeviceRequest | DeviceSubRequest) -> Mapping[str, "DerivedAttribute"]:
    if not spec.derivedAttributes:
        return {}
    from kubestow.scheduler.plugins.dynamic_resources.derived import DerivedAttribute

    return {source.name: DerivedAttribute(source) for source in spec.derivedAttributes}


class Request(msgspec.Struct, frozen=True):
    name: str
    options: tuple[Option, ...]
    is_list: bool


class WantedClaim(msgspec.Struct, frozen=True):
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]


class Compiler:
    """Compiles claims. Raises AllocationError for invalid ones."""

    def __init__(self, classes: Store[DeviceClass], selectors: Selectors, features: Features) -> None:
        self._classes = classes
        self._selectors = selectors
        self._features = features
        ready = features.dra_device_binding_conditions and features.dra_resource_claim_device_status
        # kube-scheduler's oldest allocator, which is used if both are off, does not support it.
        self._supports_distinct = features.dra_consumable_capacity or ready

    def compile(self, claim: ResourceClaim) -> WantedClaim:
        spec = claim.spec.devices
        requests = tuple(self._request(request, claim) for request in spec.requests)
        constraints = []
        for number, constraint in enumerate(spec.constraints):
            if constraint.matchAttribute is None and (
                constraint.distinctAttribute is None or not self._supports_distinct
            ):
                problem = f"constraint #{number}: empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {key_of(claim)}, {problem}")
            constraints.append(Constraint(constraint, lists=self._features.dra_list_type_attributes))
        for request in requests:
            for option in request.options:
                option.constraints = tuple(
                    number for number, of in enumerate(constraints) if of.covers(request.name, option.name)
                )
        return WantedClaim(requests, tuple(constraints))

    def _request(self, request: DeviceRequest, claim: ResourceClaim) -> Request:
        specs: list[ExactDeviceRequest | DeviceSubRequest] = list(request.firstAvailable)
        if request.exactly is not None:
            specs = [request.exactly]
        for spec in specs:
            if spec.capacity is not None and not self._features.dra_consumable_capacity:
                what = "subrequest" if isinstance(spec, DeviceSubRequest) else "request"
                name = spec.name if isinstance(spec, DeviceSubRequest) else request.name
                problem = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                raise AllocationError(f"claim {key_of(claim)}, {what} {name}: {problem}")
        options = tuple(self._option(request, spec, rank, claim) for rank, spec in enumerate(specs))
        return Request(request.name, options, bool(request.firstAvailable))

    def _option(
        self, request: DeviceRequest, spec: ExactDeviceRequest | DeviceSubRequest, rank: int, claim: ResourceClaim
    ) -> Option:
        name = spec.name if isinstance(spec, DeviceSubRequest) else request.name
        where = f"claim {key_of(claim)}, request {name}"
        if spec.derivedAttributes and not self._features.dra_derived_attributes:
            problem = "cannot handle request with derived attributes, the feature is disabled"
            raise AllocationError(f"{where}: {problem}")
        for number, selector in enumerate(spec.selectors):
            if selector.cel is None:
                problem = f"selector #{number}: CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"{where}, {problem}")
        if not spec.deviceClassName:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(spec.deviceClassName)
        if device_class is None:
            problem = f'deviceclass "{spec.deviceClassName}" not found'
            raise AllocationError(f"{where}: could not retrieve device class {spec.deviceClassName}: {problem}")
        if spec.allocationMode not in ("ExactCount", "All"):
            raise AllocationError(f"{where}: unsupported count mode {spec.allocationMode}")
        selection = self._selectors.of(device_class, spec.selectors)
        fractional = self._features.dra_fractional_capacity_range
        return Option(request.name, spec, device_class, selection, rank, fractional=fractional)
