"""Configurations with a plugin of `kubestow.contrib`."""

import json
from collections.abc import Iterable, Mapping
from typing import Any


def configured(
    plugin: str,
    args: dict[str, Any] | None,
    *,
    alone: bool = False,
    disabled: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """Return a configuration with a plugin and its arguments, and without the plugins in `disabled`, by point.

    `alone`: no other plugin scores.
    """
    plugins: dict[str, Any] = {"multiPoint": {"enabled": [{"name": plugin}]}}
    if alone:
        cleared = {"disabled": [{"name": "*"}]}
        plugins = {"preScore": cleared, "score": {**cleared, "enabled": [{"name": plugin}]}}
    for point, names in (disabled or {}).items():
        plugins.setdefault(point, {})["disabled"] = [{"name": name} for name in names]
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": plugins,
                    "pluginConfig": [{"name": plugin, "args": args}],
                }
            ],
        }
    )
