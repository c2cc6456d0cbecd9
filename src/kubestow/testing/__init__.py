"""For people who write plugins, and for the project's own tests: all it takes to try a policy without a cluster."""
