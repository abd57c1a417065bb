"""What a lab says about its judging, built from the question: its parts, their points, and the numbers of its row."""

from grader.questions.model import KernelQuestion, Question


def table(question: Question) -> str:
    """In Markdown, a row a part; a number that stands in the question is never written twice."""
    points = "bonus points" if question.bonus else "points"
    rows = [
        f"| {part.name} | {part.points:g} | {part.asks.format(**numbers(question))} |"
        for part in question.parts
    ]
    return "\n".join([f"| part | {points} | asks |", "|---|---|---|", *rows])


def numbers(question: Question) -> dict:
    """What the words of a part may name in braces."""
    found = {"public": cases(len(question.public))}
    if not isinstance(question, KernelQuestion):
        return found
    found |= {
        "launches": launches(question.most_launches),
        "targets": listed([f"sm_{target}" for target in question.targets]),
    }
    spills = question.most_spills
    found["spills"] = f"at most {spills:,} bytes of registers spilled" if spills else "no register spilled"
    if question.compile_case:
        found["compiled"] = question.compile_case.sizes
    if question.speed:
        full, none = question.speed.full, question.speed.none
        found |= {"timed": question.speed.case.sizes, "full": f"{full:g}", "none": f"{none:g}"}
        found |= {"full_speed": f"{1 / full:.0%}", "none_speed": f"{1 / none:.0%}"}
    return found


def launches(count: int) -> str:
    words = ("no", "one", "two", "three", "four")
    return f"{words[count] if count < len(words) else count} launch{'es' * (count != 1)}"


def cases(count: int) -> str:
    return "one case" if count == 1 else f"{count} cases"


def listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
