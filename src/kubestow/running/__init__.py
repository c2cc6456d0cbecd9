"""The life of a scheduler at an API server: from the first list to the last write, and the memory of its process."""
