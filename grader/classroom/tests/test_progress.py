"""A bar where somebody watches, lines elsewhere."""

import io

from grader.classroom.progress import Bar, Step


class Terminal(io.StringIO):
    def isatty(self):
        return True


def said(stream) -> str:
    with Bar(stream) as say:
        say("reading 4 submissions")
        say(Step("judged 1 of 4", 1, 4))
        say(Step("judged 4 of 4", 4, 4))
    return stream.getvalue()


def test_a_terminal_sees_one_bar_and_a_log_every_line():
    assert said(io.StringIO()) == "reading 4 submissions\njudged 1 of 4\njudged 4 of 4\n"
    shown = said(Terminal())
    assert shown.count("\n") == 1 and "[######..................] judged 1 of 4" in shown
    assert shown.endswith("[########################] judged 4 of 4\r\x1b[K"), "and it is gone at the end"
