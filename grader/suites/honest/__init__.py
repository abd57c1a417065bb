"""Right answers that nobody expected, one module a topic.

FORMS: question -> name -> (the parts that this form honestly loses, [(words, other words), ...] or the name of a cell).
"""
