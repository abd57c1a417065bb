"""Interpret Triton IR in numpy: the whole grid at once, every access checked, counted and ordered.

Needs numpy alone, no torch and no Triton.
"""
