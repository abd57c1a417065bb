"""What is asked of a learner, one module a topic."""
