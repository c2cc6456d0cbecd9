"""What is simulated, from files: ordinary Kubernetes objects, and a Scenario that says what happens and when.

`reading` makes a `Scenario` of files and tells what is wrong with them by file, line and field; `building` makes a
`Simulation` of it. `format` is the Scenario's YAML, field by field; docs/reference/simulation.md describes it.
"""
