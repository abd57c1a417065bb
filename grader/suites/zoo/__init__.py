"""Wrong answers that somebody might well write, one module a topic.

WRONG: question -> name -> (the part that must be lost, [(words, other words), ...], name of the mistake told or "").
EQUIVALENT: question -> mutant -> why it computes the same.
"""
