"""Patch formats: JSON, merge and strategic merge patch, server-side apply. Promise: no access to the store, no I/O."""
