"""Split an answer into tokens that stay the same when names, comments and spaces change, each with its position in
the text."""

import io
import keyword
import re
import tokenize
from dataclasses import dataclass

WORD = re.compile(r"\w+")
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Token:
    """`form` is what counts. A `name` was chosen by its writer, and counts by its earlier position."""

    form: str
    start: int
    end: int
    name: bool = False


def of_text(text: str) -> list[Token]:
    """Return the tokens of prose: words, whatever their case and the characters between them."""
    return [Token(word[0].casefold(), *word.span()) for word in WORD.finditer(text)]


def of_code(source: str) -> list[Token]:
    """Return the tokens of Python, or of words if it can't be parsed as such."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found, before, began = [], "", True
    try:
        for one in tokenize.generate_tokens(io.StringIO(source).readline):
            if one.type in SKIPPED:
                began = began or one.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
                continue
            span = starts[one.start[0] - 1] + one.start[1], starts[one.end[0] - 1] + one.end[1]
            text, alone = (
                one.string,
                began and one.type == tokenize.STRING,
            )  # a string statement is a comment
            began = False
            if alone:
                continue
            chosen = one.type == tokenize.NAME and not keyword.iskeyword(text) and before != "."
            form = "text" if one.type == tokenize.STRING else text
            found.append(Token(form, *span, name=chosen))
            before = text
    except (tokenize.TokenError, SyntaxError, IndexError):
        return of_text(source)
    return found


def grams(tokens: list[Token], length: int) -> list[tuple]:
    """Return every run of `length` tokens. A name becomes the distance to its earlier position, or a mark that it is
    new."""
    return [_gram(tokens[at : at + length]) for at in range(len(tokens) - length + 1)]


def _gram(window: list[Token]) -> tuple:
    seen, forms = {}, []
    for place, token in enumerate(window):
        if token.name:
            forms.append(place - seen[token.form] if token.form in seen else 0)
            seen[token.form] = place
        else:
            forms.append(token.form)
    return tuple(forms)
