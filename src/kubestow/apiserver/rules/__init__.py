"""The rules of each resource beyond its schema: defaults, validation, and allowed updates. Promise: no I/O here."""
