"""Feedback pages as a reader sees them, and what in them would act."""

import html
import re
from html.parser import HTMLParser

from grader.proofs.class_of import outcome
from grader.proofs.class_of.course import Course

ESCAPES = ("\x1b", "\x07", "\u202e")


def visible_pages(course: Course, student: str, lab: str) -> list[str]:
    """Return the text that a reader of the feedback sees."""
    found = outcome.pages(course, f"feedback/{student}", lab)
    return [visible(page) for name, page in found.items() if name.endswith(".html")]


def visible(page: str) -> str:
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page.partition("<body")[2], flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


class Acting(HTMLParser):
    """Notes the scripts, pictures and links by which a browser would act on a stranger's instructions."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.script = [], False

    def handle_starttag(self, tag, attributes):
        self.script = tag == "script"
        for name, value in attributes:
            words = (value or "").strip().lower()
            if words.startswith("javascript:") or "alert(1)" in words or "localhost" in words:
                self.found.append(f"<{tag} {name}={value!r}>")

    def handle_data(self, data):
        if self.script and "alert(1)" in data:
            self.found.append(f"<script>{data[:40]}")


def nothing_acts(course: Course, lab: str, student: str) -> list[str]:
    """No word of a student's is a script, a picture, a link, a door of MathJax or an escape in a page."""
    broken = []
    for name, page in outcome.pages(course, f"feedback/{student}", lab).items():
        if not name.endswith(".html"):
            continue
        reader = Acting()
        reader.feed(page)
        found = reader.found + [word for word in (*ESCAPES, "\\href{") if word in page]
        broken += [f"{student} {name}: must hold nothing that acts, got {one!r}" for one in found]
    return broken
