"""Interpret Triton IR in numpy, the whole grid together. Every access is checked, counted and ordered.

Needs numpy alone, no torch and no Triton.
"""
