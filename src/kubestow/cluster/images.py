"""Container images by name: how large, and on which rows."""

from kubestow.model.node import Node


class Image:
    """An image that some nodes have; the size is what the first of them said."""

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

    def __init__(self) -> None:
        self.version = 0
        """Grows with every node whose images are others."""
        self.by_name: dict[str, Image] = {}

    def copy(self) -> "ImageIndex":
        """Return an independent copy."""
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
