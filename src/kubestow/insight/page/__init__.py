"""The web page that shows what the scheduler is doing. docs/reference/web-api.md describes its JSON API.

    watching    makes moments: the changes of a scheduler since the previous moment
    moments     the parts of a moment
    history     recent moments, and the state of cluster and queue at each of them
    api         the paths of the API; tables, decisions, comparing, trying: the larger responses
    scenes      the objects and settings that a dry run depends on
    events      moments as server-sent events
    pages       the files of the page, and their URLs
    local       a server for one user on one machine, without authorization by an API server
    static/     the page: one file per view in `views`, what views share in `parts`, data and routing in `lib`

Promise: nothing here changes what the scheduler does, and it is only imported if the page is enabled.
"""
