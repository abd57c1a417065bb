"""Values, operations, blocks and functions that Triton's code generator handles while it builds."""

from .kinds import I1, UNKNOWN

ENDS = {
    "scf.yield",
    "scf.condition",
    "tt.return",
    "cf.br",
    "cf.cond_br",
    "tt.reduce.return",
    "tt.scan.return",
    "tt.map_elementwise.return",
}


CONDITIONAL = {"scf.condition", "scf.if", "cf.cond_br"}


class value:
    """A result or an argument. A block pointer's `parts` are the values that it travels as."""

    __slots__ = ("type", "owner", "loc", "instead", "parts")

    def __init__(self, type, owner, loc=UNKNOWN, parts=None):
        self.type, self.owner, self.loc, self.instead = type, owner, loc, None
        self.parts = parts or [self.__class__(part, owner, loc) for part in type.parts]

    def get_type(self):
        return self.type

    def get_loc(self):
        return self.loc

    def set_loc(self, loc):
        self.loc = loc

    def get_context(self):
        return None

    def set_attr(self, name, attr):
        if isinstance(self.owner, OpState):
            self.owner.extras[name] = attr

    def replace_all_uses_with(self, other):
        self.instead = other

    def final(self):
        return self if self.instead is None else self.instead.final()

    def flat(self) -> list["value"]:
        final = self.final()
        return [one.final() for one in final.parts] or [final]

    def id(self):
        return id(self)


class block_argument(value):
    __slots__ = ()

    def set_attr(self, name, attr):
        """Keep a hint with the loop that the argument belongs to, as MLIR does.
        A function's argument keeps none."""
        region = self.owner.parent
        if not isinstance(region.owner, function) and region.blocks[0] is self.owner:
            region.owner.extras[f"{name}_arg{self.owner.args.index(self)}"] = attr


op_result = value


class OpState:
    def __init__(self, name, operands=(), outs=(), attrs=None, regions=0, loc=UNKNOWN, successors=()):
        self.name, self.operands, self.attrs, self.loc = name, list(operands), dict(attrs or {}), loc
        self.extras = {}  # attributes that no operation of this name must have, hints
        self.results = [value(type, self, loc) for type in outs]
        self.regions = [region(self) for _ in range(regions)]
        self.successors, self.block = list(successors), None

    def set_attr(self, name, attr):
        self.extras[name] = attr

    def get_num_results(self):
        return len(self.results)

    def get_result(self, i):
        return self.results[i]

    def get_region(self, i):
        return self.regions[i]

    def get_body(self, i):
        return self.regions[i].blocks[0]

    def append_operand(self, v):
        self.operands.append(v)

    def get_operation(self):
        return self

    def verify(self):
        """Say yes, since the reader of the text verifies each operation."""
        return True


class ForOp(OpState):
    def get_induction_var(self):
        return self.get_body(0).args[0]


class IfOp(OpState):
    def get_then_block(self):
        return self.regions[0].blocks[0]

    def get_else_block(self):
        return self.regions[1].blocks[0]


class WhileOp(OpState):
    def get_before(self):
        return self.regions[0]

    def get_after(self):
        return self.regions[1]


operation = YieldOp = ConditionOp = OpState


class region:
    def __init__(self, owner):
        self.owner, self.blocks = owner, []

    def size(self):
        return len(self.blocks)

    def empty(self):
        return not self.blocks

    def get_parent_region(self):
        return self.owner.block.parent

    def push_back(self, block):
        block.parent = self
        self.blocks.append(block)

    def id(self):
        return id(self)

    def add(self, types=()):
        new = block(self, types)
        self.blocks.append(new)
        return new


class block:
    def __init__(self, parent, types=()):
        self.parent, self.ops, self.args = parent, [], [block_argument(type, self) for type in types]

    def arg(self, i):
        return self.args[i]

    get_argument = arg

    def get_num_arguments(self):
        return len(self.args)

    def add_argument(self, type):
        self.args.append(block_argument(type, self))

    def add_argument_at(self, type, loc):
        self.args.append(block_argument(type, self, loc))

    def get_parent(self):
        return self.parent

    def has_terminator(self):
        return bool(self.ops) and self.ops[-1].name in ENDS

    def has_return(self):
        return any(op.name == "tt.return" for op in self.ops)

    def merge_block_before(self, target):
        """Move what is here to the front of `target`, and go."""
        target.ops[:0] = self.ops
        for op in self.ops:
            op.block = target
        self.ops = []
        self.erase()

    def erase(self):
        self.parent.blocks.remove(self)

    def id(self):
        return id(self)


class function(OpState):
    def __init__(self, name, type, visibility, noinline, loc):
        super().__init__("tt.func", regions=1, loc=loc)
        self.symbol, self.type, self.visibility, self.noinline = name, type, visibility, noinline
        self.arg_attrs = [{} for _ in type.ins]

    def add_entry_block(self):
        return self.regions[0].add(self.type.ins)

    def args(self, i):
        return self.get_body(0).args[i]

    def get_num_args(self):
        return len(self.type.ins)

    def set_arg_attr(self, i, name, number):
        self.arg_attrs[i][name] = number

    def reset_type(self, type):
        self.type = type


class module(OpState):
    def __init__(self):
        super().__init__("builtin.module", regions=1)
        self.functions = {}

    def push_back(self, fn):
        self.functions[fn.symbol] = fn

    def has_function(self, name):
        return name in self.functions

    def get_function(self, name):
        return self.functions[name]

    def verify(self):
        """Return whether each condition is one truth value, which the front end never checks.
        The reader of the text verifies all other rules."""
        return all(
            op.operands[0].flat()[0].type is I1
            for op in self.every()
            if op.name in CONDITIONAL and op.operands
        )

    def every(self):
        """Yield each operation of its functions, at any depth."""
        todo = [block for fn in self.functions.values() for block in fn.regions[0].blocks]
        while todo:
            for op in todo.pop().ops:
                yield op
                todo += [block for region in op.regions for block in region.blocks]

    def get_entry_func_name(self):
        return self.entry.symbol

    @property
    def entry(self) -> function:
        return next(fn for fn in self.functions.values() if fn.visibility == "public")


class InsertPoint:
    __slots__ = ("block", "before")

    def __init__(self, block, before):
        self.block, self.before = block, before


class context:
    def printOpOnDiagnostic(self, _on):
        pass

    printStackTraceOnDiagnostic = printOpOnDiagnostic
