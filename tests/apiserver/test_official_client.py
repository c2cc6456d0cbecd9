"""The official Python client works against the server."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.apiserver.running import Running, pod

# Its own type hints say less than it accepts.
kubernetes: Any = importlib.import_module("kubernetes.client")
config: Any = importlib.import_module("kubernetes.config")
watch: Any = importlib.import_module("kubernetes.watch")


@pytest.fixture
def core(start: Callable[..., Running]) -> Iterator[Any]:
    """A client made from the kubeconfig that the server wrote."""
    plane = start()
    api = config.new_client_from_config(str(plane.control_plane.kubeconfig_path))
    yield kubernetes.CoreV1Api(api)
    api.close()
    api.rest_client.pool_manager.clear()


def test_list_watch_and_bind(core: Any) -> None:
    """Creates a pod, watches it, binds it, sees it bound."""
    core.create_namespaced_pod("default", pod())
    listed = core.list_pod_for_all_namespaces()
    assert [one.metadata.name for one in listed.items] == ["a"]
    target = kubernetes.V1ObjectReference(kind="Node", name="n")
    binding = kubernetes.V1Binding(metadata=kubernetes.V1ObjectMeta(name="a"), target=target)
    core.create_namespaced_pod_binding("a", "default", binding, _preload_content=False).release_conn()
    watcher = watch.Watch()
    version = listed.metadata.resource_version
    for event in watcher.stream(core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=20):
        assert (event["type"], event["object"].spec.node_name) == ("MODIFIED", "n")
        watcher.stop()


def test_errors_are_api_exceptions(core: Any) -> None:
    """A missing pod is a 404."""
    with pytest.raises(kubernetes.ApiException) as caught:
        core.read_namespaced_pod("nope", "default")
    assert caught.value.status == 404
