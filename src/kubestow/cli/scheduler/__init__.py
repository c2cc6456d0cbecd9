"""`kubestow scheduler`: flags, start, leader election, pages, and reload of a scheduler at an API server."""
