"""`kubestow up`: API server, simulated nodes and scheduler in one process, and its screen."""
