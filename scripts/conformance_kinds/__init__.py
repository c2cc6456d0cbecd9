"""One module for each kind of case: `check(case)` returns None, or the first difference in words."""
