"""The rules by which devices are allocated on a node, as a plain search over manifests without any optimization."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubestow.api.quantity import nano
from kubestow.config.features import Features

Manifest = dict[str, Any]
DeviceId = tuple[str, str, str]
MAX_RESULTS = 32


class PlainAllocationError(Exception):
    """The search ends with an error."""


class TooManyResultsError(Exception):
    """A claim would get too many devices."""


class Offer(NamedTuple):
    """A device of a slice."""

    spec: Manifest
    device: Manifest

    @property
    def id(self) -> DeviceId:
        return self.spec["driver"], self.spec["pool"]["name"], self.device["name"]

    @property
    def counters(self) -> list[tuple[str, str, int]]:
        return [
            (consumed["counterSet"], name, nano(counter["value"]))
            for consumed in self.device.get("consumesCounters", ())
            for name, counter in consumed["counters"].items()
        ]


class Pool(NamedTuple):
    """The slices of a pool as seen from a node."""

    id: tuple[str, str]
    problem: str = ""
    here: Sequence[Offer] = ()
    elsewhere: Sequence[Offer] = ()
    counters: dict[tuple[str, str], int] = {}


class Option(NamedTuple):
    request: str
    name: str
    result: str
    spec: Manifest
    everything: list[Offer] | None
    """All matching devices, for mode All."""

    @property
    def size(self) -> int:
        return int(self.spec["count"]) if self.everything is None else len(self.everything)


class Taken(NamedTuple):
    claim: int
    option: Option
    offer: Offer
    consumed: dict[str, int]


def targets(spec: Manifest, node: str) -> bool:
    """Return whether a slice or a device is for a node."""
    if "nodeName" in spec:
        return bool(spec["nodeName"] == node)
    return "allNodes" in spec


def pools_of(slices: Sequence[Manifest], node: str, features: Features) -> list[Pool]:
    """Return the pools that a node sees, in the order in which they are tried."""
    by_pool: dict[tuple[str, str], list[Manifest]] = {}
    known = [spec for spec in slices if features.dra_device_compatibility_groups or not _has_groups(spec)]
    for spec in known:
        if targets(spec, node) or any(targets(device, node) for device in _own_places(spec)):
            by_pool.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)
    found = [_pool(id_, own, [of for of in known if _pool_id(of) == id_]) for id_, own in by_pool.items()]
    return sorted(found, key=lambda pool: (any("bindingConditions" in of.device for of in pool.here), pool.id))


def _pool_id(spec: Manifest) -> tuple[str, str]:
    return spec["driver"], spec["pool"]["name"]


def _own_places(spec: Manifest) -> list[Manifest]:
    return spec["devices"] if "perDeviceNodeSelection" in spec else []


def _has_groups(spec: Manifest) -> bool:
    consumed = [of for device in spec["devices"] for of in device.get("consumesCounters", ())]
    return any(of.get("compatibilityGroups") for of in consumed)


def _pool(id_: tuple[str, str], own: list[Manifest], every: list[Manifest]) -> Pool:
    complete = own[0]["pool"]["resourceSliceCount"]
    if len(own) == complete:
        every = own
    elif len(every) != complete:
        return Pool(id_, "currently being updated")
    here = [Offer(spec, device) for spec in own for device in spec["devices"]]
    elsewhere = [Offer(spec, device) for spec in every if spec not in own for device in spec["devices"]]
    sets = [of for spec in every for of in spec.get("sharedCounters", ())]
    counters = {(of["name"], name): nano(counter["value"]) for of in sets for name, counter in of["counters"].items()}
    names = [of.device["name"] for of in here]
    used = [(counter_set, name) for of in (*here, *elsewhere) for counter_set, name, _ in of.counters]
    if len(set(names)) < len(names) or len({of["name"] for of in sets}) < len(sets) or not counters.keys() >= set(used):
        return Pool(id_, "currently invalid")
    return Pool(id_, "", here, elsewhere, counters)


class PlainAllocation:
    """Finds the first solution for the claims of a pod."""

    def __init__(
        self,
        features: Features,
        pools: Sequence[Pool],
        held: Sequence[Manifest],
        claims: Sequence[Manifest],
        skips: bool,
    ) -> None:
        """`held` are the allocated devices; `skips`: whether the node can skip operations."""
        self.features, self.pools, self.claims = features, pools, claims
        self.offers = [offer for pool in pools for offer in pool.here]
        self.pool_of = {offer.id: pool for pool in pools for offer in pool.here}
        self.held = [of for of in held if not of.get("adminAccess")]
        self.dedicated = {_id(of) for of in self.held if "shareID" not in of}
        self.can_skip = skips and features.dra_optional_node_operations
        self.checks_skipping = features.dra_optional_node_operations or features.dra_device_compatibility_groups

    def run(self) -> list[list[tuple[str, DeviceId]]] | None:
        """Return the requests and devices of each claim; None if there is no solution. Raises PlainAllocationError."""
        self.options = [self._options(number) for number in range(len(self.claims))]
        try:
            taken = self._claim(0, ())
        except TooManyResultsError:
            raise AssertionError("the check of the minimum lets no such claim pass") from None
        if taken is None:
            if any(pool.problem == "currently invalid" for pool in self.pools):
                raise PlainAllocationError("invalid resource pools were encountered")
            return None
        claims = range(len(self.claims))
        return [[(of.option.result, of.offer.id) for of in taken if of.claim == number] for number in claims]

    def _options(self, claim: int) -> list[list[Option]]:
        found = []
        for request in self.claims[claim]["requests"]:
            name = request["name"]
            if "exactly" in request:
                found.append([self._option(claim, name, name, name, request["exactly"])])
            else:
                alternatives = [(of["name"], f"{name}/{of['name']}", of) for of in request["firstAvailable"]]
                found.append([self._option(claim, name, *of) for of in alternatives])
        least = sum(min(option.size for option in options) for options in found)
        if least > MAX_RESULTS:
            problem = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise PlainAllocationError(f"{self._key(claim)}: {problem}")
        return found

    def _key(self, claim: int) -> str:
        return f"claim default/{self.claims[claim]['name']}"

    def _option(self, claim: int, request: str, name: str, result: str, spec: Manifest) -> Option:
        if spec["allocationMode"] != "All":
            return Option(request, name, result, spec, None)
        where, everything = f"{self._key(claim)}, request {name}", []
        for pool in self.pools:
            if pool.problem:
                problem = f"asks for all devices, but resource pool {'/'.join(pool.id)} is {pool.problem}"
                raise PlainAllocationError(f"{where}: {problem}")
            for offer in pool.here:
                if self._selects(claim, spec, offer):
                    consumed = self._consumed(where, spec, offer, offer.device["name"])
                    if consumed is not None and self._has_room(offer, consumed, {}):
                        everything.append(offer)
        return Option(request, name, result, spec, everything)

    # The search

    def _claim(self, claim: int, taken: tuple[Taken, ...]) -> tuple[Taken, ...] | None:
        return taken if claim == len(self.claims) else self._request(claim, 0, taken)

    def _request(self, claim: int, request: int, taken: tuple[Taken, ...]) -> tuple[Taken, ...] | None:
        if request == len(self.options[claim]):
            try:
                return self._claim(claim + 1, taken)
            except TooManyResultsError:
                return None
        options = self.options[claim][request]
        if options[0].result == options[0].request:
            return self._device(claim, request, options[0], 0, 0, taken)
        exceeded = True
        for option in options:
            try:
                found = self._device(claim, request, option, 0, 0, taken)
            except TooManyResultsError:
                continue
            exceeded = False
            if found is not None:
                return found
        if exceeded:
            raise TooManyResultsError
        return None

    def _device(
        self, claim: int, request: int, option: Option, number: int, start: int, taken: tuple[Taken, ...]
    ) -> tuple[Taken, ...] | None:
        if option.everything is not None and not option.everything:
            return None
        if number == option.size:
            return self._request(claim, request + 1, taken)
        if sum(of.claim == claim for of in taken) + option.size - number > MAX_RESULTS:
            raise TooManyResultsError
        if option.everything is not None:
            now = self._take(claim, option, option.everything[number], taken, must=True)
            return None if now is None else self._device(claim, request, option, number + 1, 0, now)
        for position, offer in enumerate(self.offers[start:], start):
            if not self._is_free(claim, option, offer, taken) or not self._selects(claim, option.spec, offer):
                continue
            now = self._take(claim, option, offer, taken, must=False)
            found = None if now is None else self._device(claim, request, option, number + 1, position + 1, now)
            if found is not None:
                return found
        return None

    def _take(
        self, claim: int, option: Option, offer: Offer, taken: tuple[Taken, ...], *, must: bool
    ) -> tuple[Taken, ...] | None:
        where = f"{self._key(claim)}, request {option.name}"
        consumed = self._consumed(where, option.spec, offer, "/".join(offer.id))
        usage = self._usage(offer, taken)
        fits = consumed is not None and self._has_room(offer, consumed, usage)
        if not must and not fits:
            return None
        if not self._is_free(claim, option, offer, taken) or not self._is_available(option, offer, taken):
            return None
        now = (*taken, Taken(claim, option, offer, consumed or {}))
        if not all(self._holds(claim, constraint, now) for constraint in self.claims[claim]["constraints"]):
            if must:
                problem = f"cannot add device {'/'.join(offer.id)} because a claim constraint would not be satisfied"
                raise PlainAllocationError(f"{where}: {problem}")
            return None
        return now if fits else None

    # Single devices

    def _is_free(self, claim: int, option: Option, offer: Offer, taken: Iterable[Taken]) -> bool:
        holders = [of.claim for of in taken if of.offer.id == offer.id and not _is_shared(offer)]
        if option.spec.get("adminAccess"):
            return claim not in holders
        return not holders and offer.id not in self.dedicated

    def _selects(self, claim: int, spec: Manifest, offer: Offer) -> bool:
        device = offer.device
        for number, selector in enumerate(spec["selectors"]):
            name = selector["cel"]["expression"].rpartition(".")[2].partition(" ")[0]
            if name not in device["attributes"]:
                where = f"selector #{number} on device {'/'.join(offer.id)}"
                raise PlainAllocationError(f"{self._key(claim)}: {where}: CEL runtime error: no such key: {name}")
            if device["attributes"][name] != {"int": 1}:
                return False
        return "perDeviceNodeSelection" not in offer.spec or targets(device, "n")

    def _consumed(self, where: str, spec: Manifest, offer: Offer, name: str) -> dict[str, int] | None:
        wanted = spec.get("capacity", {}).get("requests", {})
        capacity = offer.device.get("capacity", {})
        if not capacity.keys() >= wanted.keys():
            return None
        consumed = {of: nano(wanted.get(of, capacity[of]["value"])) for of in capacity}
        for of, amount in consumed.items():
            if amount < 0:
                raise PlainAllocationError(
                    f'{where}: checking capacity for device {name}: capacity "{of}": capacity value is negative'
                )
        return consumed

    def _usage(self, offer: Offer, taken: Iterable[Taken]) -> dict[str, int]:
        usage: dict[str, int] = {}
        shares = [of.consumed for of in taken if of.offer.id == offer.id and _is_shared(offer)]
        held = [of.get("consumedCapacity", {}) for of in self.held if _id(of) == offer.id and "shareID" in of]
        for amounts in (*shares, *({name: nano(amount) for name, amount in of.items()} for of in held)):
            for name, amount in amounts.items():
                usage[name] = usage.get(name, 0) + amount
        return usage

    def _has_room(self, offer: Offer, consumed: dict[str, int], usage: dict[str, int]) -> bool:
        capacity = offer.device.get("capacity", {})
        return all(amount + usage.get(of, 0) <= nano(capacity[of]["value"]) for of, amount in consumed.items())

    def _is_available(self, option: Option, offer: Offer, taken: Sequence[Taken]) -> bool:
        """Return whether operations, counters, compatibility groups and taints allow taking a device."""
        if "skipNodeOperations" in offer.spec and self.checks_skipping and not self.can_skip:
            return False
        in_use = {_id(of) for of in self.held}
        is_charged = not _is_shared(offer) or (offer.id not in in_use and all(of.offer.id != offer.id for of in taken))
        if offer.counters and is_charged:
            pool = self.pool_of[offer.id]
            members = [of for of in (*pool.here, *pool.elsewhere) if of.id in in_use]
            for of in taken:
                again = _is_shared(of.offer) and (of.offer.id in in_use or of.offer in members)
                if self.pool_of[of.offer.id] is pool and not again:
                    members.append(of.offer)
            if not _suffice(pool, [*members, offer]):
                return False
            if self.features.dra_device_compatibility_groups and not _are_compatible(members, offer):
                return False
        tolerated = bool(option.spec.get("tolerations"))
        return tolerated or all(taint["effect"] == "None" for taint in offer.device.get("taints", ()))

    def _holds(self, claim: int, constraint: Manifest, taken: Iterable[Taken]) -> bool:
        covered = constraint.get("requests", ())
        kind = "matchAttribute" if "matchAttribute" in constraint else "distinctAttribute"
        domain, _, name = constraint[kind].partition("/")
        values = [
            str(of.offer.device["attributes"].get(name)) if of.offer.spec["driver"] == domain else "None"
            for of in taken
            if of.claim == claim and (not covered or of.option.request in covered or of.option.result in covered)
        ]
        return "None" not in values and len(set(values)) in (0, 1 if kind == "matchAttribute" else len(values))


def _id(result: Manifest) -> DeviceId:
    return result["driver"], result["pool"], result["device"]


def _is_shared(offer: Offer) -> bool:
    return "allowMultipleAllocations" in offer.device


def _suffice(pool: Pool, members: Iterable[Offer]) -> bool:
    left = dict(pool.counters)
    for counter_set, name, amount in [of for member in members for of in member.counters]:
        left[counter_set, name] -= amount
    return min(left.values(), default=0) >= 0


def _are_compatible(members: Iterable[Offer], offer: Offer) -> bool:
    """Return whether a device shares a group with all others that use its counters; they are compatible."""
    groups = [of.device["consumesCounters"][0].get("compatibilityGroups", []) for of in members if of.counters]
    own = offer.device["consumesCounters"][0].get("compatibilityGroups", [])
    if not groups:
        return True
    if not own or not groups[0]:
        return not own and not groups[0]
    return bool(set(own).intersection(*(group for group in groups if group)))
