"""Lower kernels with Triton's own Python where its compiled library is missing: our `ir.builder` stands in its place.

Imports the standard library alone, because a jail is shown this folder.
"""
