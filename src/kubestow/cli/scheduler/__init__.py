"""`kubestow scheduler`: flags, start, leader election, HTTP endpoints and reload of a scheduler at an API server."""
