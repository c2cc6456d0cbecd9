"""The page: what the scheduler is doing, for people to look at. docs/reference/web-api.md describes its API.

    watching    looks at a scheduler, every so often: a moment is what has changed since the one before
    moments     what a moment consists of, and the state that moments add up to
    history     the moments of the last while, and the state at any of them
    files       the moments of a simulation, written beside its results and read again
    api         which path is what; tables, decisions, comparing, trying: answers that take some making
    scenes      what a dry run depends on, live or kept by a simulation
    events      moments as they come, as server-sent events
    pages       the page's own files, and the headers that keep it to itself
    local       a server for one person on one machine, where there is no API server to say who may read

Promise: nothing here changes what the scheduler does, and where nobody asked for the page it is not imported.
"""
