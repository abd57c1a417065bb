"""Expert load balance: loads, balancing and placement in numpy, then dispatch and combine on several ranks."""

from grader.topics.expert_load_balance import concepts, ranks, replicas

QUESTIONS = (*concepts.QUESTIONS, *ranks.QUESTIONS, *replicas.QUESTIONS)
SHORTCUTS = {**concepts.SHORTCUTS}
