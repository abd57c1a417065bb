"""Run in the jail's box: the answer's own Python, and the code that turns its results into plain data and IR."""
