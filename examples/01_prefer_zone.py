"""Prefer the nodes of one zone."""


class PreferZone:
    name = "PreferZone"

    def __init__(self, args, handle):
        self.zone = (args or {}).get("zone", "zone-a")

    def score(self, state, pod, node):
        return 100 if node.labels.get("topology.kubernetes.io/zone") == self.zone else 0
