"""`kubestow scheduler`: flags, start, leader election, HTTP endpoints and reload of a scheduler at an API server.

command      the command line; imports the rest only when the scheduler starts
process      signals and the exit code
watches      the informers, until their first lists are complete
running      the start: credentials, configuration, servers
live         builds the scheduler with everything that connects it to the API server
lifecycle    lease, scheduling, stop
"""
