"""Track where the next operation goes, and build the operations that hold others: functions, loops, branches."""

from . import nodes
from .kinds import UNKNOWN, attribute, function_type, location


class Placing:
    def __init__(self, context):
        self.context, self.at, self.before, self.loc = context, None, None, UNKNOWN

    def set_insertion_point_to_start(self, block):
        self.at, self.before = block, block.ops[0] if block.ops else None

    def set_insertion_point_to_end(self, block):
        self.at, self.before = block, None

    def set_insertion_point_after(self, op):
        after = op.block.ops.index(op) + 1
        self.at, self.before = op.block, op.block.ops[after] if after < len(op.block.ops) else None

    def get_insertion_block(self):
        return self.at

    def get_insertion_point(self):
        return nodes.InsertPoint(self.at, self.before)

    def restore_insertion_point(self, point):
        self.at, self.before = (point.before.block if point.before else point.block), point.before

    def set_loc(self, loc, line=None, column=None):
        self.loc = loc if line is None else self.create_loc(loc, line, column)

    def create_loc(self, file, line, column):
        return location(f'"{file}":{line}:{column}')

    def create_name_loc(self, name, child=None):
        return child or UNKNOWN

    def get_loc(self):
        return self.loc

    def create_block(self):
        return self.create_block_with_parent(self.at.parent, [])

    def create_block_with_parent(self, parent, types):
        new = parent.add(types)
        self.set_insertion_point_to_end(new)
        return new

    def new_block(self):
        return nodes.block(None)

    def put(self, op):
        """Insert an operation. The default of a parameter is made before there is a block, and belongs nowhere."""
        op.block = self.at
        if self.at is not None:
            ops = self.at.ops
            ops.insert(len(ops) if self.before is None else ops.index(self.before), op)
        return op

    def op(self, name, operands=(), outs=(), make=nodes.OpState, regions=0, successors=(), **attrs):
        return self.put(make(name, operands, outs, attrs, regions, self.loc, successors))

    def one(self, name, operands, out, **attrs):
        return self.op(name, operands, [out], **attrs).results[0]

    # functions

    def get_function_ty(self, ins, outs):
        return function_type(ins, outs)

    def get_or_insert_function(self, module, name, type, visibility, noinline):
        return module.functions.get(name) or nodes.function(name, type, visibility, noinline, self.loc)

    def call(self, fn, values):
        return self.op("tt.call", values, fn.type.outs, callee=attribute(f'@"{fn.symbol}"'))

    def ret(self, values):
        return self.op("tt.return", values)

    # branches and loops

    def create_cond_branch(self, condition, yes, no):
        sizes = "array<i32: 1, 0, 0>"
        return self.op("cf.cond_br", [condition], successors=[yes, no], operandSegmentSizes=sizes)

    def create_branch(self, to, values):
        return self.op("cf.br", values, successors=[to])

    def create_for_op(self, low, high, step, init):
        types = [v.type for v in init]
        op = self.op("scf.for", [low, high, step, *init], types, nodes.ForOp, 1)
        body = op.regions[0].add([low.type, *types])
        if not init:
            self._end(body)
        return op

    def create_if_op(self, types, condition, with_else):
        op = self.op("scf.if", [condition], types, nodes.IfOp, 2)
        for region in op.regions[: 1 + bool(with_else)]:
            body = region.add()
            if not types:
                self._end(body)
        return op

    def create_while_op(self, types, init):
        return self.op("scf.while", init, types, nodes.WhileOp, 2)

    def create_yield_op(self, values):
        return self.op("scf.yield", values)

    def create_condition_op(self, condition, values):
        return self.op("scf.condition", [condition, *values])

    def _end(self, body):
        op = nodes.OpState("scf.yield", loc=self.loc)
        op.block = body
        body.ops.append(op)
