"""The REST surface: paths, verbs, formats; each request becomes a call on objects and its result a response."""
