"""Cut words into pieces that were frequent in the training text, in a small byte-pair tokenizer."""

import re
from collections import Counter, defaultdict
from functools import lru_cache

WORD = re.compile(r" ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+|\n| ")
ALPHABET = ["\n"] + [chr(c) for c in range(32, 127)]
END = 0  # a new line ends a paragraph, and a sentence's generation


class Tokenizer:
    """Encode text to numbers and back. Piece i is the alphabet's i-th character, or the next merge's two pieces."""

    def __init__(self, merges: list[tuple[int, int]]):
        self.merges = [tuple(pair) for pair in merges]
        self.pieces = list(ALPHABET)
        for number, (a, b) in enumerate(self.merges):
            if not 0 <= min(a, b) <= max(a, b) < len(self.pieces):
                raise ValueError(
                    f"merges[{number}] must be two earlier pieces, got {a} and {b}; keep them in order"
                )
            self.pieces.append(self.pieces[a] + self.pieces[b])
        self.rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self.letter = {c: i for i, c in enumerate(ALPHABET)}
        self.word = lru_cache(maxsize=100_000)(self._word)

    def __len__(self) -> int:
        return len(self.pieces)

    def _word(self, word: str) -> tuple[int, ...]:
        parts = [self.letter[c] for c in word]
        while len(parts) > 1:
            best = min(zip(parts, parts[1:], strict=False), key=lambda pair: self.rank.get(pair, 1 << 30))
            if best not in self.rank:
                break
            parts = joined(parts, best, len(ALPHABET) + self.rank[best])
        return tuple(parts)

    def encode(self, text: str) -> list[int]:
        """Return the pieces of a text. Characters outside the alphabet are left out."""
        known = "".join(c for c in text if c in self.letter)
        return [piece for word in WORD.findall(known) for piece in self.word(word)]

    def decode(self, numbers) -> str:
        """Return the text of pieces. A number that isn't a piece is refused."""
        for number in (numbers := [int(n) for n in numbers]):
            if not 0 <= number < len(self.pieces):
                raise ValueError(
                    f"a token must be from 0 to {len(self.pieces) - 1}, got {number}; is it another vocabulary's?"
                )
        return "".join(self.pieces[number] for number in numbers)


def joined(parts: list[int], pair: tuple[int, int], new: int) -> list[int]:
    out, i = [], 0
    while i < len(parts):
        if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return out


def learn(text: str, size: int) -> Tokenizer:
    """Merge the most frequent pair until there are `size` pieces, the first pair in order among equals."""
    if size < len(ALPHABET):
        raise ValueError(f"size must be at least {len(ALPHABET)}, got {size}; each character is a piece")
    letter = {c: i for i, c in enumerate(ALPHABET)}
    words = [([letter[c] for c in word], n) for word, n in sorted(Counter(WORD.findall(text)).items())]
    counts, where = Counter(), defaultdict(set)
    for at, (parts, n) in enumerate(words):
        for pair in zip(parts, parts[1:], strict=False):
            counts[pair] += n
            where[pair].add(at)
    merges = []
    while len(ALPHABET) + len(merges) < size and counts:
        pair = min(counts, key=lambda p: (-counts[p], p))
        if counts[pair] < 2:
            break
        for at in sorted(where.pop(pair)):
            parts, n = words[at]
            new = joined(parts, pair, len(ALPHABET) + len(merges))
            for old in zip(parts, parts[1:], strict=False):
                counts[old] -= n
            for fresh in zip(new, new[1:], strict=False):
                counts[fresh] += n
                where[fresh].add(at)
            words[at] = (new, n)
        counts = Counter({p: c for p, c in counts.items() if c > 0})
        merges.append(pair)
    return Tokenizer(merges)
