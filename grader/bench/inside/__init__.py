"""Run within the bench: torch, triton and the clock. IR comes in, never Python."""
