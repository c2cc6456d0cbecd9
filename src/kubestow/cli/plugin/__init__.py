"""`kubestow plugin`: create, check and list plugins."""
