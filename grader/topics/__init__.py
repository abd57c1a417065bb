"""All that is asked of a student, one folder a topic: questions, cases, budgets, mistakes, wrong and honest answers, bars, tests."""
