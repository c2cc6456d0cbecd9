"""The REST API: paths, verbs and formats. Each request becomes a call on `objects`, and its result a response."""
