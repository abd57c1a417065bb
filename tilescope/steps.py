"""Show a recording as steps of the source, forward and back, line after line, loops iteration by iteration."""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np

from .machine.bounds import decoded
from .recorder import Access, Done, Place, Recording, Value
from .words import number_in_words

SECTOR = 32  # bytes
Lane = tuple[int | None, ...]  # an index in a block, where None means the whole axis
SAME_LINES = ("arith.constant",)  # what belongs to no line of its own
MIXED = ("tt.histogram", "tt.cat", "tt.split", "tt.reshape", "tt.map_elementwise")  # all lanes count for each


@dataclass(frozen=True)
class Step:
    """One source line performed once, or once more in a later turn of a loop."""

    number: int
    line: int
    turns: tuple[tuple[int, int], ...]
    first: int  # of the operations it performs
    end: int


@dataclass(frozen=True)
class Origin:
    """Holds a value that contributed to a lane."""

    line: int
    name: str
    shown: str


class Steps:
    """The steps of one recording. Lines count as in the file of the kernel."""

    def __init__(self, recording: Recording):
        self.recording, self.all = recording, []
        self.known: dict[tuple[int, Lane], list[Origin]] = {}
        for number, done in enumerate(recording.done):
            self.add(number, done)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, at: int) -> Step:
        return self.all[at]

    def add(self, number: int, done: Done) -> None:
        if done.name in SAME_LINES or not done.line:
            return
        last = self.all[-1] if self.all else None
        together = last is not None and (last.line, last.turns) == (done.line, done.turns)
        if together and done.name != "for":
            self.all[-1] = Step(last.number, last.line, last.turns, last.first, number + 1)
        else:
            self.all.append(Step(len(self.all), done.line, done.turns, number, number + 1))

    def operations(self, step: Step) -> list[Done]:
        return [one for one in self.recording.done[step.first : step.end] if one.name not in SAME_LINES]

    # ---- ways through them

    def forward(self, at: int) -> int:
        return min(at + 1, len(self.all) - 1)

    def back(self, at: int) -> int:
        return max(at - 1, 0)

    def next_of(self, line: int, at: int, way: int = 1) -> int | None:
        """Return the next step of a line after `at`, or the step before `at` with way -1."""
        there = range(at + 1, len(self.all)) if way > 0 else range(at - 1, -1, -1)
        return next((number for number in there if self.all[number].line == line), None)

    def over(self, at: int) -> int:
        """Return the next step outside the loop around a step. Outside every loop, return the next step."""
        depth = len(self.all[at].turns)
        there = range(at + 1, len(self.all))
        return next((n for n in there if not depth or len(self.all[n].turns) < depth), len(self.all) - 1)

    # ---- what a step shows

    def blocks(self, step: Step) -> list[tuple[int, Access | None]]:
        """Return the values that a step made or stored, the last one first,
        each with the access that moved the value."""
        found: list[tuple[int, Access | None]] = []
        for done in self.operations(step):
            if done.access is not None and done.access.moved is not None:
                found.append((done.access.moved, done.access))
            moved = done.access.moved if done.access else None
            found += [(number, None) for number in done.results if number != moved]
        return found[::-1]

    def main(self, step: Step) -> tuple[int, Access | None] | None:
        """Return the block that a step is about, which is the last one moved, else the last one made."""
        blocks = self.blocks(step)
        failed = self.failed(step)
        if failed is not None and failed.access is not None:
            moved = failed.access.moved
            return (-1 if moved is None else moved), failed.access
        moved = [pair for pair in blocks if pair[1] is not None]
        return (moved or blocks or [None])[0]

    def failed(self, step: Step) -> Done | None:
        return next((done for done in self.operations(step) if done.error), None)

    def variables(self, step: Step) -> dict[str, Value]:
        """The newest value of each named variable once a step is done."""
        found: dict[str, Value] = {}
        for value in self.recording.values:
            if value.name and (value.made_by is None or value.made_by < step.end):
                found.pop(value.name, None)
                found[value.name] = value
        return found

    # ---- lanes

    def element(self, access: Access, address: int) -> tuple[Place, int, str] | None:
        """The tensor, the byte in it and the element's name that an address of an access is."""
        found = self.recording.place_of(address)
        if found is None:
            return None
        place, byte = found
        element = byte // place.itemsize
        if not 0 <= element < place.extent:
            return place, byte, f"{place.name}[{element}], outside its {place.extent:,} elements"
        at = decoded(place, element)
        inside = all(index < side for index, side in ((at.get(a, 0), place.shape[a]) for a in at))
        index = [at.get(axis, 0) for axis in range(len(place.shape))] if inside else [element]
        return place, byte, f"{place.name}[{', '.join(map(str, index))}]"

    def origins(self, number: int, lane: Lane) -> list[Origin]:
        """Return the lines that led to one lane's value, the newest first, with the value that each line gave.
        Only a loop's last iteration counts, because earlier iterations are at the same lines."""
        if (number, lane) not in self.known:
            self.known[number, lane] = self.traced(number, lane)
        return self.known[number, lane]

    def traced(self, number: int, lane: Lane) -> list[Origin]:
        found: dict[tuple[int, str], Origin] = {}
        todo, order, seen, told = [(-self.made_at(number), 0, number, lane)], count(1), set(), set()
        while todo:
            *_, number, lane = heappop(todo)
            if number < 0:
                continue
            value = self.recording.values[number]
            done = self.recording.done[value.made_by] if value.made_by is not None else None
            place = ~number if done is None else done.place
            if place in seen:
                continue
            seen.add(place)
            if done is None:
                if value.name:
                    found.setdefault((0, value.name), Origin(0, value.name, self.shown(value, lane)))
                continue
            # a line shows the named value, not every part of the expression
            if done.line and done.name not in SAME_LINES and (value.name or done.line not in told):
                told.add(done.line)
                name = value.name or done.name.split(".")[-1]
                shown = self.shown(value, lane) + self.loaded_from(done, lane)
                found.setdefault((done.line, value.name), Origin(done.line, name, shown))
            for other, way in self.sources(done, value, lane):
                heappush(todo, (-self.made_at(other), next(order), other, way))
        return list(found.values())

    def loaded_from(self, done: Done, lane: Lane) -> str:
        """Return the element that a load's lane read, empty if several lanes are meant or the lane read nothing."""
        access = done.access
        if access is None or access.kind != "load" or None in lane:
            return ""
        if access.active is not None and not access.active[lane]:
            return ", masked off"
        found = self.element(access, int(access.address[lane]))
        return f", from {found[2]}" if found else ""

    def made_at(self, number: int) -> int:
        made = self.recording.values[number].made_by if number >= 0 else None
        return -1 if made is None else made

    def sources(self, done: Done, value: Value, lane: Lane) -> list[tuple[int, Lane]]:
        """The operands' lanes that one lane of a result is made of."""
        values = [self.recording.values[n] if n >= 0 else None for n in done.operands]
        if done.name == "tt.dot" and len(lane) >= 2:
            *batch, row, column = lane
            ways = [(*batch, row, None), (*batch, None, column), lane]
            return list(zip(done.operands, ways, strict=False))
        if done.name == "tt.reduce" and values[0] is not None:
            axis = done.attributes.get("axis", 0)
            whole = (*lane[:axis], None, *lane[axis:])
            return [(n, whole) for n in done.operands]
        if done.name == "tt.expand_dims":
            axis = done.attributes.get("axis", 0)
            return [(done.operands[0], (*lane[:axis], *lane[axis + 1 :]))]
        if done.name == "tt.trans":
            order = done.attributes.get("order", tuple(reversed(range(len(lane)))))
            way = [None] * len(lane)
            for to, axis in enumerate(order):
                way[axis] = lane[to]
            return [(done.operands[0], tuple(way))]
        if done.name == "tt.reshape" and None not in lane and values[0] is not None:
            flat = np.ravel_multi_index(lane, value.shape) if lane else 0
            return [(done.operands[0], tuple(map(int, np.unravel_index(flat, values[0].shape))))]
        mixed = done.name in MIXED
        ways = [same_lane(v, lane, value.shape) if v is not None and not mixed else None for v in values]
        if (
            done.name in ("tt.scan", "tt.gather") and ways[0] is not None
        ):  # along its axis a lane is made of many
            axis = done.attributes.get("axis", 0)
            ways[0] = (*ways[0][:axis], None, *ways[0][axis + 1 :])
        if done.name == "tt.join":
            ways = [lane[:-1]] * len(values)
        return [
            (n, (None,) * len(v.shape) if way is None else way)
            for n, v, way in zip(done.operands, values, ways, strict=True)
            if v is not None
        ]

    def shown(self, value: Value, lane: Lane) -> str:
        """Return a lane's value in words, or the least and the most of several lanes."""
        some = (
            value.lanes[tuple(slice(None) if at is None else at for at in lane)]
            if value.shape
            else value.kept
        )
        return self.words(value, np.asarray(some))

    def words(self, value: Value, some: np.ndarray) -> str:
        if value.type == "descriptor":
            return "a descriptor"
        if some.size == 1:
            return self.word(value, some.reshape(-1)[0])
        low, high = (self.word(value, edge) for edge in edges(some))
        return low if low == high else f"{low} to {high}"

    def word(self, value: Value, one) -> str:
        if value.type == "pointer":
            found = self.element(None, int(one))
            return f"&{found[2]}" if found else f"{int(one):#x}"
        return number_in_words(one)


def same_lane(value: Value, lane: Lane, shape: tuple[int, ...]) -> Lane | None:
    """Return the same lane of an operand that is as large as the result or broadcast to it,
    or None if all lanes count."""
    if len(value.shape) != len(lane):
        return None
    sides = zip(value.shape, shape, lane, strict=True)
    return tuple(0 if side == 1 else at if side == to else None for side, to, at in sides)


def edges(some: np.ndarray) -> tuple:
    """Return the least and the most, or NaN if there is one."""
    if some.dtype.kind == "b":
        return some.min(), some.max()
    flat = some.astype(np.float64) if some.dtype.kind not in "iu" else some
    if flat.dtype.kind == "f" and np.isnan(flat).any():
        return np.float64("nan"), np.float64("nan")
    return flat.min(), flat.max()
