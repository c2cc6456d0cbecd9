"""Code that several plugins share."""
