"""Kubernetes objects from files: the only reader of manifests, of kubectl output, and of configuration files.

`read` takes files, folders and standard input, and returns a `Manifest` for each object: its position, its kind and
name, and its JSON. `decode` turns manifests into objects of the model. Lists are split into their items. All problems
are reported in one `ObjectsError`, a line for each, with file, position and field.
Promise: the expansion of YAML aliases and the nesting depth of a document are limited.
"""

from kubestow.api.files.decoding import Decoded, decode
from kubestow.api.files.errors import ObjectsError
from kubestow.api.files.manifests import Manifest, documents, manifests, read

__all__ = ["Decoded", "Manifest", "ObjectsError", "decode", "documents", "manifests", "read"]
