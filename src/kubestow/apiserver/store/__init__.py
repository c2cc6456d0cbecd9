"""The object store: versioned objects and recent changes. Promise: I/O only in `sqlite`, on its own thread."""
