"""Names of container images."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def normalized_image_name(name: str) -> str:
    """The name with its tag; an image without one is the latest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
