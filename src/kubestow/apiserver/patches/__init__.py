"""Ways to change part of an object: JSON patch, merge patch, strategic merge patch, server-side apply."""
