"""Records of scheduling decisions and their reasons: one record for each cycle, and one JSON schema for all readers.

`schema` is the JSON, described in docs/reference/decisions.md. Every command and page that shows a decision uses it,
for past decisions and for dry runs.

Promise: the scheduler does not import this package, which is only loaded if decisions are recorded.
"""
