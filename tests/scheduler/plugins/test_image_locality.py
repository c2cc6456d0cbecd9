"""ImageLocality: scores by image size and the share of nodes that have the image."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.plugins.image_locality import ImageLocality
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, make, scores

MEGABYTE = 1024 * 1024


def pod_with_images(*images: str, **spec: Any) -> Pod:
    return make_pod(
        "p", spec={"containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)], **spec}
    )


def plugin(cluster: Any) -> Any:
    return make(ImageLocality, cluster=cluster)


@pytest.mark.parametrize(("size", "score"), [(0, 0), (10, 0), (46, 0), (1023, 50), (2000, 100), (9000, 100)])
def test_size_counts_between_bounds(size: int, score: int) -> None:
    """The score rises from 23 MB (0) to 1,000 MB per container (100); an image on half of the nodes counts half."""
    cluster = cluster_of(make_node("with", images={"app:latest": size * MEGABYTE}), make_node("without"))
    assert scores(plugin(cluster), cluster, pod_with_images("app")) == {"with": score, "without": 0}


def test_images_of_all_containers_add_up() -> None:
    """Init containers and image volumes count, and raise the maximum."""
    held = {"app:1": 500 * MEGABYTE, "init:1": 500 * MEGABYTE, "data:1": 500 * MEGABYTE}
    cluster = cluster_of(make_node("n", images=held))
    init = {"initContainers": [{"name": "i", "image": "init:1"}]}
    volume = {"volumes": [{"name": "v", "image": {"reference": "data:1"}}]}
    assert scores(plugin(cluster), cluster, pod_with_images("app:1")) == {"n": 48}
    assert scores(plugin(cluster), cluster, pod_with_images("app:1", **init)) == {"n": 49}
    assert scores(plugin(cluster), cluster, pod_with_images("app:1", **init, **volume)) == {"n": 49}


@pytest.mark.parametrize(
    ("image", "found"), [("app", True), ("app:latest", True), ("app:v1", False), ("registry:5000/app", False)]
)
def test_image_names_are_normalized(image: str, found: bool) -> None:
    """A name without a tag means `latest`; a port is not a tag."""
    cluster = cluster_of(make_node("n", images={"app:latest": 900 * MEGABYTE}))
    assert (scores(plugin(cluster), cluster, pod_with_images(image)) == {"n": 0}) is not found


def test_images_that_no_node_has_score_zero() -> None:
    """Every node scores 0."""
    cluster = cluster_of(make_node("a"), make_node("b"))
    assert scores(plugin(cluster), cluster, pod_with_images("app")) == {"a": 0, "b": 0}


def test_signatures_include_the_spread_of_images() -> None:
    """They change with the number of nodes that have the pod's images, not with other images."""
    cluster = cluster_of(make_node("a"), make_node("b"))
    locality, info = plugin(cluster), PodInfo(pod_with_images("app"))
    unknown = locality.sign(info)
    cluster.set_node(make_node("a", images={"other:latest": MEGABYTE}))
    assert locality.sign(info) == unknown
    cluster.set_node(make_node("a", images={"app:latest": MEGABYTE}))
    on_one = locality.sign(info)
    assert on_one != unknown
    cluster.set_node(make_node("b", images={"other:latest": MEGABYTE}))
    assert locality.sign(info) == on_one
    cluster.set_node(make_node("b", images={"app:latest": MEGABYTE}))
    assert locality.sign(info) not in (unknown, on_one)
