"""`kubestow explain`: a decision, or a dry run, as one screen."""
