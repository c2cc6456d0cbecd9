"""Looser variants of a resource claim, and of the devices: what keeps the devices that exist from the claim.

Each variant is tried for a pod that has nothing but the claim, so that other constraints of the pod do not hide it.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from kubestow.api.devices import (
    CapacityRequirements,
    CELDeviceSelector,
    Device,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceTaintSelector,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubestow.api.pod import Pod, PodResourceClaim, PodSpec, Toleration
from kubestow.api.quantity import nano
from kubestow.api.tolerations import tolerates_device
from kubestow.insight.explain.causes.cause import NEAR, Scene
from kubestow.insight.explain.changes import CLUSTER, Change, feasible_after, smallest
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.scheduler.cluster.listers import key_of

_WORD = re.compile(r"[\w./-]+\w")
_SHARED = set(DeviceSubRequest.__struct_fields__).intersection(ExactDeviceRequest.__struct_fields__)
_MOST = 20
"""Maximum number of variants that are tried."""

Spec = ExactDeviceRequest | DeviceSubRequest


class Looser(NamedTuple):
    """A change that gives a claim devices."""

    why: str
    """What keeps the devices from the claim without the change."""
    change: Change


def alone(pod: Pod, *wanted: PodResourceClaim) -> Pod:
    """Return the pod with nothing but some of its claims, and every taint tolerated."""
    tolerations = (Toleration(operator="Exists"),)
    spec = PodSpec(schedulerName=pod.spec.schedulerName, resourceClaims=wanted, tolerations=tolerations)
    return replace(pod, spec=spec)


def looser_claims(scene: Scene, claim: ResourceClaim, pod: Pod) -> list[Looser]:
    """Return the variants after which a node is feasible for a pod that has nothing but the claim, smallest first."""
    variants = islice(_Variants(scene, claim, pod).all(), _MOST)
    helpful = [one for one in variants if feasible_after(scene.world, pod, one.change)]
    return sorted(helpful, key=lambda one: one.change.size)


class _Variants:
    def __init__(self, scene: Scene, claim: ResourceClaim, pod: Pod) -> None:
        self._scene = scene
        self._claim = claim
        self._pod = pod
        slices = list(scene.listers.resource_slices)
        self._devices = [(of, device) for of in slices for device in of.spec.devices]

    def all(self) -> Iterator[Looser]:
        devices = self._claim.spec.devices
        for number, request in enumerate(devices.requests):
            for option in request.firstAvailable:
                fields = {name: getattr(option, name) for name in _SHARED}
                only = replace(request, exactly=ExactDeviceRequest(**fields), firstAvailable=())
                requests = (*devices.requests[:number], only, *devices.requests[number + 1 :])
                changed = replace(
                    self._claim, spec=replace(self._claim.spec, devices=replace(devices, requests=requests))
                )
                change = self._again(f"with {option.name} only", changed, 0.4)
                yield Looser(f"request {request.name} has alternatives", change)
            several: list[tuple[int, Spec]] = [(-1, request.exactly)] if request.exactly is not None else []
            several += enumerate(request.firstAvailable)
            for place, spec in several:
                yield from self._of_spec(number, place, spec)
                yield from self._of_class(spec.deviceClassName)
        yield from self._without_taints()
        for index, one in enumerate(devices.constraints):
            name = one.matchAttribute or one.distinctAttribute
            rest = (*devices.constraints[:index], *devices.constraints[index + 1 :])
            same = "the same" if one.matchAttribute else "different values of"
            changed = replace(self._claim, spec=replace(self._claim.spec, devices=replace(devices, constraints=rest)))
            yield Looser(
                f"no free devices have {same} {name}", self._again(f"without the constraint on {name}", changed, 0.15)
            )

    def _again(self, how: str, claim: ResourceClaim, size: float = 0.3) -> Change:
        return Change(CLUSTER, f"resource claim {key_of(claim)} created again {how}", size, objects=(claim,))

    def _with(self, number: int, place: int, how: str, size: float = 0.3, **fields: object) -> Change:
        """Return the change to other fields of a request, or of one of its alternatives."""
        claim = self._claim
        devices = claim.spec.devices
        request = devices.requests[number]
        if place < 0:
            assert request.exactly is not None
            request = replace(request, exactly=replace(request.exactly, **fields))
        else:
            options = [replace(one, **fields) if i == place else one for i, one in enumerate(request.firstAvailable)]
            request = replace(request, firstAvailable=tuple(options))
        requests = (*devices.requests[:number], request, *devices.requests[number + 1 :])
        changed = replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))
        return self._again(how, changed, size)

    def _of_spec(self, number: int, place: int, spec: Spec) -> Iterator[Looser]:
        world, pod = self._scene.world, self._pod
        for index, selector in enumerate(spec.selectors):
            expression = "" if selector.cel is None else selector.cel.expression
            others = (*spec.selectors[:index], *spec.selectors[index + 1 :])
            for similar, corrected in self._corrected(expression):
                selectors = (*others, DeviceSelector(CELDeviceSelector(corrected)))
                why = f"no free device meets {expression}{did_you_mean((similar,))}"
                yield Looser(
                    why, self._with(number, place, f"with the selector {corrected}", NEAR, selectors=selectors)
                )
            change = self._with(number, place, f"without the selector {expression}", selectors=others)
            yield Looser(f"no free device meets {expression}", change)
        if spec.count > 1:

            def fewer(less: int) -> Change:
                left = spec.count - less
                how = f"with {left} device{'' if left == 1 else 's'} instead of {spec.count}"
                return self._with(number, place, how, 0.2, count=left)

            less = smallest(0, spec.count, lambda less: bool(feasible_after(world, pod, fewer(less))))
            if less < spec.count:
                yield Looser(f"no node has more than {spec.count - less} free for it", fewer(less))
        for taint in self._taints():
            if not any(tolerates_device(one, taint) for one in spec.tolerations):
                operator = "Equal" if taint.value else "Exists"
                more = (*spec.tolerations, Toleration(taint.key, operator, taint.value, taint.effect))
                change = self._with(number, place, f"with a toleration of {_text(taint)}", 0.35, tolerations=more)
                yield Looser(f"devices have the taint {_text(taint)}", change)
        for name, amount in () if spec.capacity is None else spec.capacity.requests.items():
            sizes = {one.capacity[name].value for _, one in self._devices if name in one.capacity}
            for most in sorted((one for one in sizes if nano(one) < nano(amount)), key=nano, reverse=True)[:1]:
                requests = CapacityRequirements({**spec.capacity.requests, name: most}) if spec.capacity else None
                change = self._with(
                    number, place, f"with {most} of {name} instead of {amount}", 0.25, capacity=requests
                )
                yield Looser(f"no free device has {amount} of {name}", change)

        if spec.capacity is not None:
            change = self._with(number, place, "without its requests of capacity", 0.4, capacity=None)
            yield Looser("no free device has the requested capacity", change)

    def _of_class(self, name: str) -> Iterator[Looser]:
        found = self._scene.listers.device_classes.get(name)
        selectors = () if found is None else found.spec.selectors
        for index, selector in enumerate(selectors):
            assert found is not None
            expression = "" if selector.cel is None else selector.cel.expression
            others = (*selectors[:index], *selectors[index + 1 :])
            why = f"no free device meets {expression} of the class"
            ways = [(NEAR, f"changed to {its}", its) for _, its in self._corrected(expression)]
            for size, how, its in [*ways, (0.4, "removed", "")]:
                kept = (*others, DeviceSelector(CELDeviceSelector(its))) if its else others
                changed = replace(found, spec=replace(found.spec, selectors=kept))
                text = f"selector {expression} of device class {name} {how}"
                yield Looser(why, Change(CLUSTER, text, size, objects=(changed,)))

    def _corrected(self, expression: str) -> Iterator[tuple[str, str]]:
        """Yield the nearest name or value of a device for each unknown word of an expression, and the expression."""
        known = {name for _, one in self._devices for name in (*one.attributes, *one.capacity)}
        known |= {its.string or "" for _, one in self._devices for its in one.attributes.values()}
        known |= {of.spec.driver for of, _ in self._devices}
        known |= {name.rpartition("/")[2] for name in known}
        for quoted in dict.fromkeys(_WORD.findall(expression)):
            word = quoted.rpartition(".")[2] if quoted.startswith(("device.", ".")) else quoted
            if word and word not in known and word not in ("device", "attributes", "capacity", "driver"):
                for near in nearest(word, known):
                    yield near, re.sub(rf"\b{re.escape(word)}\b", near, expression)

    def _taints(self) -> list[DeviceTaint]:
        """Return the taints of devices, in their slices and by rules."""
        rules = [one.spec.taint for one in self._scene.listers.device_taint_rules]
        every = [taint for _, one in self._devices for taint in one.taints]
        return list(dict.fromkeys(replace(one, timeAdded=None) for one in (*every, *rules) if one.effect != "None"))

    def _without_taints(self) -> Iterator[Looser]:
        for rule in self._scene.listers.device_taint_rules:
            taint = rule.spec.taint
            selected = rule.spec.deviceSelector or DeviceTaintSelector()
            which = [selected.driver, selected.pool, selected.device]
            text = f"DeviceTaintRule {rule.metadata.name} taints {'/'.join(filter(None, which)) or 'all devices'}"
            off = replace(rule, spec=replace(rule.spec, taint=replace(taint, effect="None")))
            change = Change(CLUSTER, f"DeviceTaintRule {rule.metadata.name} deleted", 0.25, objects=(off,))
            yield Looser(f"{text}: {_text(taint)}", change)
        for of, device in self._devices:
            for taint in device.taints:
                what = f"{of.spec.driver}/{of.spec.pool.name}/{device.name}"
                devices = tuple(_untainted(one, taint) if one is device else one for one in of.spec.devices)
                off_slice = replace(of, spec=replace(of.spec, devices=devices))
                change = Change(CLUSTER, f"taint {_text(taint)} removed from device {what}", 0.4, objects=(off_slice,))
                yield Looser(f"device {what} has the taint {_text(taint)}", change)


def _untainted(device: Device, taint: DeviceTaint) -> Device:
    return replace(device, taints=tuple(one for one in device.taints if one is not taint))


def _text(taint: DeviceTaint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
