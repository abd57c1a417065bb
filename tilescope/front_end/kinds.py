"""Types, attributes and locations of a module under construction,
each spelled as in MLIR's generic form."""


class type:
    """One type. The same text gives the same object."""

    known, parts = {}, ()

    def __new__(cls, text, scalar=None, shape=(), to=None):
        found = cls.known.get(text)
        if found is None:
            found = cls.known[text] = object.__new__(cls)
            found.text, found.scalar, found.shape, found.to = text, scalar or found, tuple(shape), to
        return found

    def like(self, scalar: "type") -> "type":
        """Return this type's shape with another scalar."""
        return tensor_of(scalar, self.shape) if self.shape else scalar

    @property
    def bits(self) -> int:
        return int(self.scalar.text[1:])

    @property
    def is_whole(self) -> bool:
        """Return whether its elements are integers."""
        return self.scalar.text in ("i1", "i8", "i16", "i32", "i64")

    def is_integer(self, width: int) -> bool:
        return self.text == f"i{width}"

    def is_fp16(self) -> bool:
        return self.text == "f16"

    def __str__(self) -> str:
        return self.text


def number_of(n) -> int:
    """Return a size that may come as a tl.constexpr."""
    return int(getattr(n, "value", n))


def tensor_of(scalar: type, shape) -> type:
    shape = tuple(map(number_of, shape))
    return type(f"tensor<{''.join(f'{n}x' for n in shape)}{scalar}>", scalar, shape)


def pointer_to(element: type, space: int = 1) -> type:
    if not element.shape:
        return type(f"!tt.ptr<{element}>" if space == 1 else f"!tt.ptr<{element}, {space}>", to=element)
    found = type(f"!tt.ptr<{element}>", to=element)  # travels as its base, shape, strides and offsets
    found.parts = [pointer_to(element.scalar), *[I64] * (3 * len(element.shape))]
    return found


def descriptor_of(block: type, signed: bool) -> type:
    sign = ("s" if signed else "u") if block.scalar.text[0] == "i" and block.scalar.text != "i1" else ""
    sides = "".join(f"{n}x" for n in block.shape)
    return type(f"!tt.tensordesc<tensor<{sides}{sign}{block.scalar}>>", to=block)


def flat_types(types) -> list[type]:
    """Return the flat types that carry values of these types."""
    return [part for one in types for part in (one.parts or [one])]


def many(types) -> str:
    types = [str(t) for t in types]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


class function_type:
    def __init__(self, ins, outs):
        self.ins, self.outs = list(ins), list(outs)


class attribute(str):
    """An attribute's text. "unit" is present or absent."""


integer_attr = bool_attr = unit_attr = attribute
I1, I8, I16, I32, I64 = (type(f"i{n}") for n in (1, 8, 16, 32, 64))
F16, BF16, F32, F64 = (type(n) for n in ("f16", "bf16", "f32", "f64"))


def make_attr(numbers, _context=None) -> attribute:
    return attribute(f"dense<[{', '.join(str(number_of(n)) for n in numbers)}]> : tensor<{len(numbers)}xi32>")


def quoted(text: str) -> str:
    def escaped(c):
        plain = " " <= c <= "~" and c not in '"\\'
        return c if plain else "".join(f"\\{b:02X}" for b in c.encode())

    return '"' + "".join(map(escaped, text)) + '"'


class location:
    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def set_name(self, _name):
        pass

    def __str__(self) -> str:
        return f"loc({self.text})"


UNKNOWN = location("unknown")
