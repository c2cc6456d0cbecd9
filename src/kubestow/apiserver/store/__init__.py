"""The object store: versioned objects and recent changes.

Promise: `store`, `collection` and `records` do no I/O. The data file is read and written through `sqlite`, which writes
on its own thread.
"""
