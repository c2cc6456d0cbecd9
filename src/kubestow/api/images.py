"""Names of container images."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def normalized_image_name(name: str) -> str:
    """Return the name with its tag; without one, the tag is `latest`."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
