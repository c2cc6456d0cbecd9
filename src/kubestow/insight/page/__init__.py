"""The page: shows people what the scheduler is doing. docs/reference/web-api.md describes its API.

    watching    makes moments: what has changed since the last look at a scheduler
    moments     what a moment consists of
    history     the moments of the last while, and cluster and queue at each of them
    files       the file that a simulation writes for the page, and how it is read
    api         the paths; tables, decisions, comparing, trying: answers that take more work
    scenes      what a dry run depends on
    events      moments as server-sent events
    pages       the files of the page, and the headers that isolate it from other pages
    local       a server for one person on one machine, without an API server to ask who may read

Promise: nothing here changes what the scheduler does, and it is not imported unless the page is asked for.
"""
