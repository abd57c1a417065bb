"""Interpret Triton IR in numpy: the whole grid at once, every access checked, counted and ordered.

Needs numpy and ml_dtypes alone, no torch and no Triton.
"""
