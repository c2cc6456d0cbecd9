"""What the scheduler decided about pods, and why: one record a cycle, one JSON schema for everybody who reads it.

`schema` is the JSON, described in docs/reference/decisions.md. Whoever tells of a decision speaks it, of a live one and
of a dry run alike.

Promise: nothing that decides imports this package, and where nobody asked for records it is not imported at all.
"""
