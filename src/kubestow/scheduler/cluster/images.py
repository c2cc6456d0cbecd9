"""Container images by name: their size, and the rows that have them."""

from collections.abc import Mapping

from kubestow.api.node import Node
from kubestow.scheduler.cluster.history import IMAGE, History


class Image:
    """An image that some nodes have; the size is that reported by the first of them."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()

    def copy(self) -> "Image":
        """Return an independent copy."""
        other = Image(self.size)
        other.rows = self.rows.copy()
        return other


class ImageIndex:
    """All images of all nodes."""

    def __init__(self, history: History | None = None) -> None:
        self._history = history
        self.version = 0
        """Incremented with every change of the images of a node."""
        self.by_name: dict[str, Image] = {}

    def copy(self) -> "ImageIndex":
        """Return an independent copy without history."""
        other = ImageIndex()
        other.version = self.version
        other.by_name = {name: image.copy() for name, image in self.by_name.items()}
        return other

    def add(self, row: int, node: Node) -> None:
        self.version += 1
        for held in node.status.images:
            for name in held.names:
                image = self.by_name.get(name)
                if image is None:
                    image = self.by_name[name] = Image(held.sizeBytes)
                    self._note(name, None, image.size)
                image.rows.add(row)

    def remove(self, row: int, node: Node) -> None:
        self.version += 1
        for held in node.status.images:
            for name in held.names:
                image = self.by_name.get(name)
                if image is not None:
                    image.rows.discard(row)
                    if not image.rows:
                        del self.by_name[name]
                        self._note(name, image.size, None)

    def _note(self, name: str, before: int | None, after: int | None) -> None:
        if self._history is not None:
            self._history.note(IMAGE, name, before, after)

    def sizes(self) -> dict[str, int]:
        """Return the size of each image, by name."""
        return {name: image.size for name, image in self.by_name.items()}

    def set_sizes(self, sizes: Mapping[str, int | None]) -> None:
        """Replace the sizes of images by those at another revision; images that no node has are ignored."""
        self.version += 1
        for name, size in sizes.items():
            if size is not None and name in self.by_name:
                self.by_name[name].size = size
