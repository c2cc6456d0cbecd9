"""Configurations with a plugin of `kubestow.contrib`."""

import json
from typing import Any


def configured(plugin: str, args: dict[str, Any], *, alone: bool = False) -> str:
    """Return a configuration with a plugin and its arguments; `alone`: no other plugin scores."""
    plugins: dict[str, Any] = {"multiPoint": {"enabled": [{"name": plugin}]}}
    if alone:
        cleared = {"disabled": [{"name": "*"}]}
        plugins = {"preScore": cleared, "score": {**cleared, "enabled": [{"name": plugin}]}}
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
