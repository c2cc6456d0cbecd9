"""Scenarios: files with ordinary Kubernetes objects, and a Scenario that defines what happens and when.

`reading` reads files into a `Scenario` and reports problems by file, line and field; `building` makes a `Simulation` of
it. `format` defines the fields of the YAML; docs/reference/simulation.md describes them.
"""
