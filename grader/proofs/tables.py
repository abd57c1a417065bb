"""Tables that stand in the topics' own folders, found there: a new topic adds its rows and touches no suite."""

import importlib
import importlib.util
import pkgutil

import grader.topics


def of_topics(module: str, name: str) -> dict:
    """`name` of grader/topics/*/<module>.py, for each topic that has it, as one table."""
    found = {}
    for topic in pkgutil.iter_modules(grader.topics.__path__):
        place = f"grader.topics.{topic.name}.{module}"
        if topic.ispkg and topic.name != "tests" and importlib.util.find_spec(place):
            found |= getattr(importlib.import_module(place), name, {})
    return found
