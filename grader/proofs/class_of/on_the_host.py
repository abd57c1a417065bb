"""Attack by running code in an answer. Exploits of grader/proofs/exploits are used where they fit."""

from grader.proofs import exploits
from grader.proofs.class_of.attack import ONE, Attack, Hand
from grader.proofs.right import right

REFUSED = "may hold|may import"  # a kernel's cell is read before it may run
OS = 'os = __import__("os")\n'


def cell(body: str):
    """Make a cell whose `body` runs as soon as the answer is loaded. The code after it is right."""

    def do(hand: Hand) -> None:
        question, text = hand.question, OS + body
        for word, value in (
            ("{ROOT}", hand.course.root),
            ("{NEIGHBOUR}", hand.course.neighbour),
            ("{STOLEN}", hand.stolen),
            ("{LAB}", hand.sheet.lab),
            ("{NAME}", hand.sheet.name),
        ):
            text = text.replace(word, str(value))
        rest = "def launch(p):\n    return {}\n" if question.compiles else right(question.id)
        hand.answer["source"] = f"{text}\n{rest}"

    return do


def exploit(theme: str, question: str) -> Attack | None:
    """An exploit of the suite that is made for this very question, where the theme has one."""
    known = {one.name: one for one in exploits.load()}
    for name in EXPLOITS[theme]:
        if known[name].question == question:
            return Attack(
                known[name].what, _place(known[name].source), f"{known[name].expect} {question}", ONE
            )
    return None


def speaks_of_hidden_cases(hand: Hand) -> None:
    """Answer public cases correctly. On hidden ones print, raise and try to return the arguments."""
    question = hand.question
    if question.compiles:
        return cell("print(p)")(hand)
    public = sorted({repr(call.args) for call in question.public})
    hand.answer["source"] = f"""{right(question.id)}
public, seen = {public!r}, {question.entry}


def {question.entry}(*arguments):
    if repr(arguments) in public:
        return seen(*arguments)
    print("asked for", arguments)
    raise ValueError(f"asked for {{arguments}}")
"""


def _place(source: str):
    def do(hand: Hand) -> None:
        hand.answer["source"] = source

    return do


APPENDED = 'with open("{}", "ab") as file:\n    file.write(b"mine")'
RUNS_WHAT_IT_READS = """
words = open("{ROOT}/solutions/{LAB}/{NAME}").read()
exec(__import__("json").loads(words)["cells"][0]["source"])
"""
NO_SUCH, DENIED = (
    "FileNotFoundError|PermissionError",
    "PermissionError|Read-only|FileNotFoundError|Permission denied",
)
STOPPED = "still running|was killed|stopped|MemoryError|ended itself|broke off"

KILLERS = (
    Attack(
        "prints PASS and ends the process", cell('print("PASS")\nos._exit(0)'), f"ended itself|{REFUSED}", ONE
    ),
    Attack(
        "kills every process it may", cell("os.kill(-1, 9)"), f"{STOPPED}|ProcessLookupError|{REFUSED}", ONE
    ),
    Attack(
        "ends the process that judges",
        cell("os.kill(os.getppid(), 9)\n__import__('time').sleep(1)"),
        f"broke off|{STOPPED}|{REFUSED}",
        ONE,
    ),
    Attack("crashes the interpreter", cell('__import__("ctypes").string_at(0)'), f"crashed|{REFUSED}", ONE),
    Attack(
        "starts processes without end",
        cell("while True:\n    os.fork()"),
        f"BlockingIOError|own channel|{STOPPED}|{REFUSED}",
        ONE,
    ),
)
HOGS = (
    Attack(
        "fills the disk",
        cell('file = open("large", "wb")\nwhile True:\n    file.write(bytes(1 << 24))'),
        f"OSError|{STOPPED}|{REFUSED}",
        ONE,
    ),
    Attack("computes for ever", cell("while True:\n    pass"), f"{STOPPED}|{REFUSED}", ONE),
    Attack(
        "sleeps for ever",
        cell('import_ = __import__\nimport_("time").sleep(10**6)'),
        f"{STOPPED}|{REFUSED}",
        ONE,
    ),
    Attack(
        "takes all memory",
        cell("kept = []\nwhile True:\n    kept.append(bytearray(1 << 28))"),
        f"{STOPPED}|{REFUSED}",
        ONE,
    ),
    Attack("prints without end", cell("while True:\n    print('x' * 10**6)"), f"{STOPPED}|{REFUSED}", ONE),
)
THIEVES = (
    Attack("runs the solution", cell(RUNS_WHAT_IT_READS), f"{NO_SUCH}|{REFUSED}", ONE),
    Attack("writes over another's notebook", cell(APPENDED.format("{STOLEN}")), f"{DENIED}|{REFUSED}", ONE),
    Attack("speaks of hidden cases", speaks_of_hidden_cases, f"a hidden case|{REFUSED}", ONE),
    Attack(
        "writes into the gradebook", cell(APPENDED.format("{ROOT}/gradebook.db")), f"{DENIED}|{REFUSED}", ONE
    ),
    Attack(
        "reads the secret seeds",
        cell('open("{ROOT}/work/class/{LAB}.json").read()'),
        f"{NO_SUCH}|{REFUSED}",
        ONE,
    ),
    Attack(
        "writes to a neighbour's folder",
        cell(APPENDED.format("{NEIGHBOUR}/thesis.txt")),
        f"{DENIED}|{REFUSED}",
        ONE,
    ),
    Attack(
        "changes the grader itself",
        cell(APPENDED.format("{ROOT}/grader/compare.py")),
        f"{DENIED}|{REFUSED}",
        ONE,
    ),
)
EXPLOITS = {
    "kills": ("kills_the_examiner", "patched_comparison", "stopped_clock"),
    "fills and never ends": ("a_hundred_processes", "freed_memory", "python_in_the_kernel"),
    "reads and writes elsewhere": (
        "reads_the_solution",
        "changes_the_reference",
        "guessed_seed",
        "two_faces",
    ),
}
