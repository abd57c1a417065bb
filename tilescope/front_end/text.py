"""Print a tidied module in MLIR's generic form."""

from .kinds import flat_types, many, quoted
from .tidying import tidied


def text_of(module) -> str:
    return Writer().text(tidied(module))


class Writer:
    def __init__(self):
        self.lines, self.names, self.labels, self.places = [], {}, {}, {}

    def text(self, functions) -> str:
        for fn in functions:
            self.function(fn)
        places = [f"{alias} = loc({text})" for text, alias in self.places.items()]
        return "\n".join([*places, '"builtin.module"() ({', *self.lines, "}) : () -> ()", ""])

    def name(self, v) -> str:
        return self.names.setdefault(v, f"%{len(self.names)}")

    def place(self, loc) -> str:
        return f"loc({self.places.setdefault(loc.text, f'#loc{len(self.places)}')})"

    def function(self, fn) -> None:
        sets = ", ".join(
            "{" + ", ".join(f"{k} = {v} : i32" for k, v in one.items()) + "}" for one in fn.arg_attrs
        )
        sets = f"arg_attrs = [{sets}], " if any(fn.arg_attrs) else ""
        type = f"({', '.join(map(str, flat_types(fn.type.ins)))}) -> {many(flat_types(fn.type.outs))}"
        attrs = f'{sets}function_type = {type}, sym_name = {quoted(fn.symbol)}, sym_visibility = "{fn.visibility}"'
        self.lines.append(f'"tt.func"() <{{{attrs}}}> ({{')
        self.region(fn.regions[0])
        self.lines.append(
            f"}}) {{noinline = {str(bool(fn.noinline)).lower()}}} : () -> () {self.place(fn.loc)}"
        )

    def region(self, region) -> None:
        for i, block in enumerate(region.blocks):
            if i or block.args:
                arguments = ", ".join(f"{self.name(v)}: {v.type}" for v in block.args)
                self.lines.append(f"{self.label(block)}({arguments}):")
            for op in block.ops:
                self.op(op)

    def label(self, block) -> str:
        return self.labels.setdefault(block, f"^bb{len(self.labels)}")

    def op(self, op) -> None:
        head = ""
        if len(op.results) == 1:
            head = f"{self.name(op.results[0])} = "
        elif op.results:
            pack = f"%{len(self.names)}"
            self.names |= {v: f"{pack}#{i}" for i, v in enumerate(op.results)}
            head = f"{pack}:{len(op.results)} = "
        to = f"[{', '.join(map(self.label, op.successors))}]" if op.successors else ""
        attrs = f" <{{{listed(op.attrs)}}}>" if op.attrs else ""
        extras = f" {{{listed(op.extras)}}}" if op.extras else ""
        self.lines.append(f'{head}"{op.name}"({", ".join(map(self.name, op.operands))}){to}{attrs}')
        for i, region in enumerate(op.regions):
            self.lines[-1] += ", {" if i else " ({"
            self.region(region)
            self.lines.append("}")
        self.lines[-1] += ")" if op.regions else ""
        types = f"({', '.join(str(v.type) for v in op.operands)}) -> {many([v.type for v in op.results])}"
        self.lines[-1] += f"{extras} : {types} {self.place(op.loc)}"


def listed(attrs: dict) -> str:
    return ", ".join(name if value == "unit" else f"{name} = {value}" for name, value in attrs.items())
