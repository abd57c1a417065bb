"""What runs within the jail's box: the answer's own Python, and what makes plain data and IR of it."""
