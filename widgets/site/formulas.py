"""Turn the lessons' formulas into MathML, which a browser draws by itself, for the part of LaTeX that lessons use."""

import re
from html import escape

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:[.,]\d+)*|[^\s]", re.S)


def signs(table: str) -> dict[str, str]:
    """LaTeX's name of each sign, from words such as alpha:α."""
    return dict(word.split(":", 1) for word in table.split())


LETTERS = signs(
    "alpha:α beta:β gamma:γ delta:δ epsilon:ε varepsilon:ε eta:η theta:θ kappa:κ mu:μ nu:ν pi:π rho:ρ "
    "sigma:σ tau:τ phi:φ varphi:φ chi:χ psi:ψ omega:ω Delta:Δ Gamma:Γ Lambda:Λ Sigma:Σ Phi:Φ Psi:Ψ "
    "Omega:Ω infty:∞ ell:ℓ partial:∂ nabla:∇ emptyset:∅ dots:… ldots:… cdots:⋯ vdots:⋮ top:⊤ forall:∀ "
    "exists:∃ lambda:λ"
)
OPERATORS = signs(
    "cdot:· times:× div:÷ pm:± approx:≈ neq:≠ ne:≠ leq:≤ le:≤ geq:≥ ge:≥ ll:≪ gg:≫ equiv:≡ sim:∼ "
    "propto:∝ odot:⊙ otimes:⊗ oplus:⊕ circ:∘ ast:∗ star:⋆ mid:∣ notin:∉ subset:⊂ subseteq:⊆ cup:∪ cap:∩ "
    "setminus:∖ to:→ rightarrow:→ leftarrow:← gets:← Rightarrow:⇒ Leftarrow:⇐ Leftrightarrow:⇔ mapsto:↦ "
    "implies:⇒ iff:⇔ land:∧ lor:∨ colon:: bmod:mod in:∈"
)
FENCES = signs(
    "lfloor:⌊ rfloor:⌋ lceil:⌈ rceil:⌉ langle:⟨ rangle:⟩ vert:| lvert:| rvert:| Vert:‖ lVert:‖ rVert:‖ "
    "lbrace:{ rbrace:}"
)
LARGE = dict(sum="∑", prod="∏", int="∫", bigcup="⋃", bigcap="⋂", bigoplus="⨁")
NAMES = "exp log ln min max arg argmax argmin sup inf lim sin cos tanh det dim gcd Pr".split()
UNDER_NAMES = {"min", "max", "argmax", "argmin", "sup", "inf", "lim", "Pr"}
SPACES = {",": 0.17, ":": 0.22, ";": 0.28, "!": -0.17, " ": 0.25, "quad": 1, "qquad": 2}
ACCENTS = dict(
    hat="^", widehat="^", bar="‾", overline="‾", tilde="~", widetilde="~", vec="→", dot="˙", ddot="¨"
)
WORDS = {"text", "textrm", "textbf", "textit", "mathrm", "operatorname", "texttt", "mathtt", "mathsf"}
BOLD = {"mathbf", "boldsymbol", "mathcal"}
DOUBLE = dict(R="ℝ", N="ℕ", Z="ℤ", Q="ℚ", C="ℂ", E="𝔼", P="ℙ")
FRACTIONS = {"frac", "dfrac", "tfrac"}
IGNORED = {"displaystyle", "textstyle", "limits", "nolimits", "big", "Big", "bigg", "Bigg", "bigl", "bigr"}
IGNORED |= {"Bigl", "Bigr", "biggl", "biggr", "nonumber"}
TABLES = {"aligned": "", "align*": "", "matrix": "", "cases": "{", "pmatrix": "(", "bmatrix": "["}
CLOSING = {"": "", "{": "", "(": ")", "[": "]"}


class Unreadable(ValueError):
    """Say which part of a formula this translator doesn't know."""


def mathml(latex: str, display: bool = False) -> str:
    inside = _Reader(latex, display).whole()
    kind = ' display="block"' if display else ""
    return f'<math{kind} alttext="{escape(" ".join(latex.split()))}">{inside}</math>'


def _row(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _fence(sign: str) -> str:
    return f'<mo stretchy="true" symmetric="true">{escape(sign)}</mo>' if sign not in ("", ".") else ""


class _Reader:
    def __init__(self, latex: str, display: bool):
        self.latex, self.display, self.at = latex, display, 0

    def peek(self) -> str:
        match = TOKEN.search(self.latex, self.at)
        return match[0] if match else ""

    def take(self) -> str:
        match = TOKEN.search(self.latex, self.at)
        if not match:
            raise Unreadable(f"a formula must be whole, got {self.latex!r}; close its braces")
        self.at = match.end()
        return match[0]

    def expect(self, wanted: str) -> None:
        if (got := self.take()) != wanted:
            raise Unreadable(f"a formula must have {wanted} here, got {got!r} in {self.latex!r}; mend it")

    def whole(self) -> str:
        parts = self.run(set())
        if self.peek():
            raise Unreadable(
                f"a formula must be whole, got a stray {self.peek()!r} in {self.latex!r}; mend it"
            )
        return _row(parts)

    def run(self, ends: set[str]) -> list[str]:
        """Read atoms with their scripts, up to one of `ends`."""
        parts = []
        while self.peek() and self.peek() not in ends | {"}"}:
            parts.append(self.scripted())
        return parts

    def group(self) -> str:
        """Return one argument, either {...} or a single atom."""
        if self.peek() != "{":
            return self.atom()[0]
        self.take()
        inside = self.run(set())
        self.expect("}")
        return _row(inside)

    def words(self) -> str:
        """Return the raw text of {...}, blanks kept."""
        self.expect("{")
        end = self.latex.find("}", self.at)
        if end < 0:
            raise Unreadable(f"a formula must be whole, got {self.latex!r}; close its braces")
        text, self.at = self.latex[self.at : end], end + 1
        return text

    def scripted(self) -> str:
        base, under = self.atom()
        found = {}
        while self.peek() in ("_", "^", "'"):
            sign = self.take()
            found["^" if sign == "'" else sign] = "<mo>′</mo>" if sign == "'" else self.group()
        low, high = found.get("_"), found.get("^")
        kind = ("munder", "mover", "munderover") if under and self.display else ("msub", "msup", "msubsup")
        if low and high:
            return f"<{kind[2]}>{base}{low}{high}</{kind[2]}>"
        if low or high:
            tag = kind[0] if low else kind[1]
            return f"<{tag}>{base}{low or high}</{tag}>"
        return base

    def atom(self) -> tuple[str, bool]:
        """Return one thing to draw, and whether its limits go above and below."""
        token = self.peek()
        if token == "{":
            return self.group(), False
        self.take()
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>", False
        if token.isalpha():
            return f"<mi>{token}</mi>", False
        return f"<mo>{escape('−' if token == '-' else token)}</mo>", False

    def command(self, name: str) -> tuple[str, bool]:
        if name in LARGE:
            return f"<mo>{LARGE[name]}</mo>", True
        if name in NAMES:
            return f"<mi>{name}</mi>", name in UNDER_NAMES
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>", False
        if name in OPERATORS:
            return f"<mo>{escape(OPERATORS[name])}</mo>", False
        if name in FENCES or name in ("{", "}", "|"):
            return f'<mo stretchy="false">{FENCES.get(name, "‖" if name == "|" else name)}</mo>', False
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}em"></mspace>', False
        if name in ("%", "$", "#", "&", "_"):
            return f"<mi>{escape(name)}</mi>", False
        if name in IGNORED:
            return "", False
        return self.with_argument(name), name in ("underbrace", "overbrace")

    def with_argument(self, name: str) -> str:
        if name in WORDS:
            return f"<mtext>{escape(self.words())}</mtext>"
        if name in BOLD:
            return f'<mi class="bold">{escape(self.words())}</mi>'
        if name == "mathbb":
            return f"<mi>{escape((letter := self.words()) and DOUBLE.get(letter, letter))}</mi>"
        if name in FRACTIONS:
            above, below = self.group(), self.group()
            return f"<mfrac>{above}{below}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self.group()}</msqrt>"
        if name in ACCENTS:
            return f'<mover accent="true">{self.group()}<mo>{ACCENTS[name]}</mo></mover>'
        if name in ("underbrace", "overbrace"):
            tag, sign = ("munder", "⏟") if name == "underbrace" else ("mover", "⏞")
            return f'<{tag}>{self.group()}<mo stretchy="true">{sign}</mo></{tag}>'
        if name == "left":
            return self.fenced()
        if name == "begin":
            return self.table()
        raise Unreadable(
            f"a formula must use known commands, got \\{name}; add it to widgets/site/formulas.py"
        )

    def sign(self) -> str:
        token = self.take()
        return FENCES.get(token[1:], token[1:].replace("|", "‖")) if token.startswith("\\") else token

    def fenced(self) -> str:
        opening, inside = self.sign(), self.run({r"\right"})
        self.expect(r"\right")
        return f"<mrow>{_fence(opening)}{''.join(inside)}{_fence(self.sign())}</mrow>"

    def table(self) -> str:
        kind = self.words()
        if kind not in TABLES:
            raise Unreadable(
                f"a formula's table must be one of {', '.join(TABLES)}, got {kind}; use one of these"
            )
        rows = [[]]
        while True:
            rows[-1].append("".join(self.run({"&", r"\\", r"\end"})))
            end = self.take()
            if end == r"\end":
                break
            if end == r"\\":
                rows.append([])
        self.words()
        body = "".join(f"<mtr>{''.join(f'<mtd>{c}</mtd>' for c in row)}</mtr>" for row in rows if any(row))
        opening = TABLES[kind]
        shape = ' class="aligned"' if kind.startswith("align") else ""
        return f"<mrow>{_fence(opening)}<mtable{shape}>{body}</mtable>{_fence(CLOSING[opening])}</mrow>"
