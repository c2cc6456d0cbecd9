"""Kubernetes objects from files: the one way in for manifests, for what kubectl writes, and for configuration files.

`read` takes files, folders and standard input, and returns a `Manifest` for each object: where it is, what it is, and
its JSON. `decode` turns those into objects of the model. Lists are taken apart. Everything wrong is told in one
`ObjectsError`, a line for each problem, with file, place and field. What aliases of YAML stand for, and how deep a
document nests, is bounded.
"""

from kubestow.api.files.decoding import Decoded, decode
from kubestow.api.files.errors import ObjectsError
from kubestow.api.files.manifests import Manifest, documents, manifests, read

__all__ = ["Decoded", "Manifest", "ObjectsError", "decode", "documents", "manifests", "read"]
