"""Lower kernels with Triton's own Python where its compiled library is missing. Our `ir.builder` replaces
that library.

Imports the standard library alone, because a jail is shown this folder.
"""
