"""The source of a legacy Policy from flags: a file, or a ConfigMap that is read once at the start.

A ConfigMap wins over a file, unless --use-legacy-policy-config is given.
"""

from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from kubestow.cli import configuration_file
from kubestow.config import ConfigError, Problem, SchedulerConfiguration

KEY = "policy.cfg"
WARNING = "Policy is legacy: `kubestow config translate` writes an equivalent configuration"


class _Flags(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...


class _ConfigMap(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class PolicySource(msgspec.Struct, frozen=True):
    """The source of a Policy, and its name in error messages."""

    name: str
    place: str | _ConfigMap

    def read(self, configuration: SchedulerConfiguration, flags: _Flags) -> str:
        """Return the text of the Policy; a ConfigMap is read from the API server. Raises ConfigError."""
        if isinstance(self.place, str):
            return configuration_file.read(self.place)
        return _read_config_map(self.place, configuration, flags)


def policy_source(flags: _Flags) -> PolicySource | None:
    """Return the source of the Policy, None if the flags name none. Raises ConfigError."""
    file, name = flags["policy-config-file"], flags["policy-configmap"]
    if flags["use-legacy-policy-config"] and not file:
        raise ConfigError([Problem("--policy-config-file", "is required with --use-legacy-policy-config")])
    if file and (flags["use-legacy-policy-config"] or not name):
        return PolicySource(file, file)
    if name:
        place = _ConfigMap(flags["policy-configmap-namespace"] or "kube-system", name)
        return PolicySource(f"ConfigMap {place.namespace}/{place.name}", place)
    return None


def _read_config_map(place: _ConfigMap, configuration: SchedulerConfiguration, flags: _Flags) -> str:
    # Imported only now: help and usage errors must stay fast.
    import asyncio

    import msgspec

    from kubestow.api.failures import CallError
    from kubestow.client.clients import configured_access, get_once
    from kubestow.clock import SystemClock

    path = f"/api/v1/namespaces/{quote(place.namespace, safe='')}/configmaps/{quote(place.name, safe='')}"
    try:
        access = configured_access(configuration, flags["master"], flags["config"])
        body = asyncio.run(get_once(access, path, SystemClock()))
        data = msgspec.json.decode(body, type=dict[str, Any]).get("data") or {}
    except (CallError, msgspec.DecodeError) as error:
        raise ConfigError([Problem("", f"cannot be read: {error}")]) from None
    if KEY not in data:
        raise ConfigError([Problem(f"data[{KEY}]", f"is missing; there is {', '.join(sorted(data)) or 'nothing'}")])
    return str(data[KEY])
