"""Compare what a numpy answer returned, as it crossed the wall, with the expected result."""

import re

import numpy as np

from grader.judge.compare import Difference, difference
from grader.questions.draws import where_finite


def compare(question, name: str, encoded, want, arrays: dict) -> str:
    """Return an empty text if the encoded result equals the expected one, else what differs."""
    trouble = differs(question, name, encoded, want, arrays)
    return trouble.sentence() if isinstance(trouble, Difference) else trouble


def differs(question, name: str, encoded, want, arrays: dict) -> Difference | str:
    """The same, with the numbers themselves where numbers differ."""
    if not isinstance(encoded, dict):
        return f"{name} must be {kind_of(want)}, got something else"
    if isinstance(want, tuple | list):
        return _sequence(question, name, encoded, want, arrays)
    if isinstance(want, dict):
        return _dict(question, name, encoded, want, arrays)
    if isinstance(want, str) or want is None:
        if "plain" not in encoded:
            wanted = "None" if want is None else f"the text {want!r}"
            return f"{name} must be {wanted}, got {came_in_words(encoded, arrays)}"
        got = encoded["plain"]
        return "" if got == want else f"{name} is {got!r}, wanted {want!r}"
    return _array(question, name, encoded, np.asarray(want), arrays)


def _sequence(question, name: str, encoded, want, arrays: dict) -> Difference | str:
    items = items_of(encoded, arrays)
    if items is None:
        return f"{name} must return {len(want)} values, got {came_in_words(encoded, arrays)}"
    if len(items) != len(want):
        got = len(items) if isinstance(encoded.get("list"), list) else came_in_words(encoded, arrays)
        return f"{name} must return {len(want)} values, got {got}"
    for i, (item, w) in enumerate(zip(items, want, strict=True)):
        if trouble := differs(question, f"{name}[{i}]", item, w, arrays):
            return trouble
    return ""


def of_call(question, args: tuple, encoded, want, arrays: dict) -> Difference | str:
    """Return what is wrong with one call's result, by the question's own rule if it has one."""
    if question.agree is None:
        return differs(question, question.entry, encoded, want, arrays)
    want, got = np.asarray(want), None
    if isinstance(encoded, dict):
        items = encoded.get("list")
        got = stacked(items, want.ndim, arrays) if isinstance(items, list) else array_of(encoded, arrays)
    if got is None or got.shape != want.shape:
        came = kind_of(got) if got is not None else "something else"
        return f"{question.entry} must be {kind_of(want)}, got {came}"
    return question.agree(*args, got.astype(np.float64))


def which_agree(question, encoded, want, arrays: dict) -> str:
    """Return which of several results are right, or an empty text if none is, or if there is only one."""
    items = (
        items_of(encoded, arrays) if isinstance(encoded, dict) and isinstance(want, tuple | list) else None
    )
    if items is None or len(items) != len(want):
        return ""
    right = [not differs(question, "", item, w, arrays) for item, w in zip(items, want, strict=True)]
    if all(right) or not any(right):
        return ""
    if all(right[: (first := right.index(False))]) and first and not any(right[first:]):
        return (
            f"the first {first} of its {len(right)} results agree" if first > 1 else "its first result agrees"
        )
    places = ", ".join(f"[{place}]" for place, is_right in enumerate(right) if is_right)
    return f"of its {len(right)} results {places} agree{'s' * (right.count(True) == 1)}"


def step_to(path: list[tuple[str, str]], encoded, want, arrays: dict) -> tuple:
    """Follow a path such as [0]['key'] into a result and into the expected one. Return (None, None) if either ends
    earlier."""
    for number, key in path:
        if key:
            encoded = encoded["dict"].get(key) if isinstance(encoded, dict) and "dict" in encoded else None
            want = want[key]
            continue
        items = items_of(encoded, arrays) if isinstance(encoded, dict) else None
        if items is None or int(number) >= min(len(items), len(want)):
            return None, None
        encoded, want = items[int(number)], want[int(number)]
    return encoded, want


def numbers_at(path: list[tuple[str, str]], encoded, want, arrays: dict) -> tuple[float, float] | None:
    """Return the single number at a path, and the expected one, or None if either isn't a number."""
    encoded, want = step_to(path, encoded, want, arrays)
    if not isinstance(encoded, dict) or want is None or isinstance(want, str | tuple | list | dict):
        return None
    got, want = array_of(encoded, arrays), np.asarray(want)
    if got is None or np.ndim(got) or want.ndim:
        return None
    return float(got), float(want)


def count_wrong(question, encoded, want, arrays: dict) -> int:
    """Count the wrong elements of a result. Anything else that is wrong counts as one."""
    if isinstance(want, tuple | list):
        items = items_of(encoded, arrays) if isinstance(encoded, dict) else None
        if items is None or len(items) != len(want):
            return 1
        return sum(count_wrong(question, item, one, arrays) for item, one in zip(items, want, strict=True))
    trouble = differs(question, "x", encoded, want, arrays)
    return trouble.wrong if isinstance(trouble, Difference) else int(bool(trouble))


SPELT = re.compile(r" is '([^']*)', wanted '([^']*)'$")


def spelling(sentence: str) -> str:
    """Say that two texts differ in spelling alone, where they do."""
    found = SPELT.search(sentence)
    if not found or found[1].strip().lower() != found[2].strip().lower():
        return ""
    return (
        f"the same word in another spelling: capital letters and spaces count, and {found[2]!r} is asked for"
    )


def items_of(encoded, arrays: dict) -> list | None:
    """The items of a list or tuple, or of an array taken for one, each encoded as a result of its own would be."""
    items = encoded["list"] if isinstance(encoded.get("list"), list) else array_of(encoded, arrays)
    if items is None or (isinstance(items, np.ndarray) and not items.ndim):
        return None
    return [item if isinstance(item, dict) else {"value": item} for item in items]


def _dict(question, name: str, encoded, want: dict, arrays: dict) -> Difference | str:
    mine = encoded.get("dict")
    keys = {str(k) for k in want}
    if not isinstance(mine, dict) or set(mine) != keys:
        got = (
            f"the keys {few(sorted(map(str, mine)))}"
            if isinstance(mine, dict)
            else came_in_words(encoded, arrays)
        )
        return f"{name} must be a dict with the keys {', '.join(map(str, want))}, got {got}"
    troubles = (differs(question, f"{name}[{k!r}]", mine[str(k)], w, arrays) for k, w in want.items())
    return next(filter(None, troubles), "")


MOST_NAMED = 8
WORD = 4  # bytes, from which on words of bits are whole numbers, while a code or a count may be a float


def few(names: list[str]) -> str:
    said = ", ".join(name[:40] for name in names[:MOST_NAMED])
    return said + f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)


def array_of(encoded, arrays: dict) -> np.ndarray | None:
    if "value" in encoded:
        return np.asarray(encoded["value"])
    return arrays.get(encoded.get("array")) if isinstance(encoded.get("array"), str) else None


def _array(question, name: str, encoded, want: np.ndarray, arrays: dict) -> Difference | str:
    got = array_of(encoded, arrays)
    if got is None and isinstance(encoded.get("list"), list) and want.ndim:
        got = stacked(encoded["list"], want.ndim, arrays)
    if not want.size and (encoded.get("list") == [] if got is None else got.shape == (0,)):
        return ""  # a list without rows can't tell how wide they would be
    if got is None:
        return f"{name} must be {kind_of(want)}, got {came_in_words(encoded, arrays)}"
    if got.shape != want.shape:
        return f"{name} must be {kind_of(want)}, got {kind_of(got)}"
    if want.dtype.kind == "u" and want.itemsize >= WORD and got.dtype.kind not in "iu":
        return f"{name} must be whole numbers, as {want.dtype} holds them, got numbers of dtype {got.dtype}"
    if want.dtype.kind in "biu":
        return difference(name, got, want, 0.0) or ""
    with np.errstate(invalid="ignore"):  # no tolerance times infinity
        allowed = question.atol + question.rtol * np.abs(want.astype(np.float64))
    found = difference(name, got, want, where_finite(allowed, want))
    return found or (other_zeros(name, got, want) if not (question.atol or question.rtol) else "")


def other_zeros(name: str, got: np.ndarray, want: np.ndarray) -> str:
    """Say where a zero has another sign, if numbers must come as they are."""
    with np.errstate(invalid="ignore"):
        other = np.argwhere((want == 0) & (np.signbit(got.astype(np.float64)) != np.signbit(want)))
    if not len(other):
        return ""
    index = ", ".join(map(str, other[0]))
    return (
        f"{name}[{index}] is {got[tuple(other[0])]:g}, wanted {want[tuple(other[0])]:g}: the number must come as it is, and "
        f"{len(other):,} zeros have another sign"
    )


def stacked(items: list, depth: int, arrays: dict) -> np.ndarray | None:
    """Return a list of rows, or of lists of rows, as an array. Lists may nest at most `depth` deep."""
    rows = [_row(item, depth - 1, arrays) if isinstance(item, dict) else None for item in items]
    if not rows or any(row is None for row in rows) or len({row.shape for row in rows}) > 1:
        return None
    return np.stack(rows)


def _row(item: dict, depth: int, arrays: dict) -> np.ndarray | None:
    if depth and isinstance(item.get("list"), list):
        return stacked(item["list"], depth, arrays)
    return array_of(item, arrays)


def kind_of(want) -> str:
    if isinstance(want, tuple | list):
        return f"{len(want)} values"
    array = np.asarray(want)
    return f"an array of shape {array.shape}" if array.shape else "a number"


def came_in_words(encoded, arrays: dict) -> str:
    """Describe a result in words that a learner has met."""
    if "list" in encoded:
        return f"a sequence of {len(encoded['list'])}"
    if "dict" in encoded:
        return "a dict"
    if "plain" in encoded:
        return (
            "None (is there a return?)"
            if encoded["plain"] is None
            else f"the text {str(encoded['plain'])[:60]!r}"
        )
    array = array_of(encoded, arrays)
    if array is None:
        return "something else"
    return f"an array of shape {array.shape}" if array.ndim else "a single number"
