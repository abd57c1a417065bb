"""Ask everything that a student is graded on, one folder a topic: questions, cases, budgets, mistakes, wrong and
right answers, baselines, tests."""
