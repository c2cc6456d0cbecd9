"""Which form a client wants: plain objects, tables for people, or metadata only."""

from functools import lru_cache

from kubestow.apiserver.errors import not_acceptable

OBJECT = "object"
TABLE = "table"
PARTIAL = "partial"

_FORMS = {"Table": TABLE, "PartialObjectMetadata": PARTIAL, "PartialObjectMetadataList": PARTIAL}


@lru_cache(maxsize=256)
def wanted_form(accept: str) -> str:
    """The first form of an Accept header that this server writes."""
    if not accept.strip():
        return OBJECT
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        if media not in ("application/json", "*/*", "application/*"):
            continue
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        kind = options.get("as")
        if kind is None:
            return OBJECT
        if kind in _FORMS and options.get("g", "meta.k8s.io") == "meta.k8s.io" and options.get("v", "v1") == "v1":
            return _FORMS[kind]
    raise not_acceptable()
