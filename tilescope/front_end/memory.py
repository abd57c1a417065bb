"""Loads, stores, atomics, block pointers and descriptors."""

from . import kinds
from .enumerations import PADDING_OPTION
from .kinds import I32, I64, number_of, tensor_of
from .nodes import value
from .tensors import array_of

NAN_BITS = {"f16": "0x7E00", "bf16": "0x7FC0", "f32": "0x7FC00000", "f64": "0x7FF8000000000000"}


class Memory:
    def create_get_program_id(self, axis):
        return self.one("tt.get_program_id", [], I32, axis=f"{axis} : i32")

    def create_get_num_programs(self, axis):
        return self.one("tt.get_num_programs", [], I32, axis=f"{axis} : i32")

    def create_barrier(self):
        self.op("ttg.barrier", addrSpace="31 : i32")

    def create_load(self, p, cache, evict, volatile):
        return self.create_masked_load(p, None, None, cache, evict, volatile)

    def create_masked_load(self, p, mask, other, cache, evict, volatile):
        given = [v for v in (p, mask, other) if v is not None]
        how = _cached(cache, evict) | {
            "boundaryCheck": "array<i32>",
            "isVolatile": self.get_bool_attr(volatile),
        }
        sizes = array_of([1, int(mask is not None), int(other is not None)])
        return self.one("tt.load", given, p.type.like(p.type.scalar.to), **how, operandSegmentSizes=sizes)

    def create_store(self, p, v, cache, evict):
        self.create_masked_store(p, v, None, cache, evict)

    def create_masked_store(self, p, v, mask, cache, evict):
        given = [p, v] if mask is None else [p, v, mask]
        self.op("tt.store", given, **_cached(cache, evict), boundaryCheck="array<i32>")

    def create_atomic_rmw(self, kind, p, v, mask, order, scope):
        given = [p, v] if mask is None else [p, v, mask]
        how = {"atomic_rmw_op": f"{int(kind)} : i32", **_ordered(order, scope)}
        return self.one("tt.atomic_rmw", given, v.type, **how)

    def create_atomic_cas(self, p, compare, v, order, scope):
        return self.one("tt.atomic_cas", [p, compare, v], v.type, **_ordered(order, scope))

    # descriptors

    def create_tensor_descriptor_type(self, block, signed):
        return kinds.descriptor_of(block, signed)

    def create_make_tensor_descriptor(self, base, shape, strides, block, signed, padding):
        out = kinds.descriptor_of(tensor_of(base.type.to, block), signed)
        padding = f"{int(padding)} : i32"
        return self.one("tt.make_tensor_descriptor", [base, *shape, *strides], out, padding=padding)

    def create_descriptor_load(self, descriptor, offsets, cache, evict):
        how = _cached(cache, evict)
        return self.one("tt.descriptor_load", [descriptor, *offsets], descriptor.type.to, **how)

    def create_descriptor_store(self, descriptor, v, offsets):
        self.op("tt.descriptor_store", [descriptor, v, *offsets])

    def create_descriptor_reduce(self, kind, descriptor, v, offsets):
        self.op("tt.descriptor_reduce", [descriptor, v, *offsets], kind=f"{int(kind)} : i32")

    def create_descriptor_gather(self, descriptor, rows, column, out):
        return self.one("tt.descriptor_gather", [descriptor, rows, column], out)

    def create_descriptor_scatter(self, descriptor, v, rows, column):
        self.op("tt.descriptor_scatter", [descriptor, rows, column, v])

    # Block pointers are opened at their uses, as one of Triton's passes does.

    def create_make_block_ptr(self, base, shape, strides, offsets, block, order):
        type = kinds.pointer_to(tensor_of(base.type.to, block))
        wide = [self.create_int_cast(offset, I64, True) for offset in offsets]
        return value(type, None, self.loc, [base, *shape, *strides, *wide])

    def create_advance(self, p, deltas):
        parts = p.final().parts
        kept, moved = parts[: -len(deltas)], parts[-len(deltas) :]
        deltas = [self.create_int_cast(delta, I64, True) for delta in deltas]
        moved = [self.create_add(part, delta) for part, delta in zip(moved, deltas, strict=True)]
        return value(p.type, None, self.loc, [*kept, *moved])

    def create_tensor_pointer_load(self, p, checked, padding, cache, evict, volatile):
        at, mask = self._lanes(p, checked)
        block, other = p.type.to, None
        if padding is not None and mask is not None:
            bits = NAN_BITS[block.scalar.text] if padding == PADDING_OPTION.PAD_NAN else None
            nothing = self.constant(bits, block.scalar) if bits else self.get_null_value(block.scalar)
            other = self.create_splat(block, nothing)
        return self.create_masked_load(at, mask, other, cache, evict, volatile)

    def create_tensor_pointer_store(self, p, v, checked, cache, evict):
        at, mask = self._lanes(p, checked)
        self.create_masked_store(at, v, mask, cache, evict)

    def _lanes(self, p, checked):
        """Return the pointers that a block pointer means,
        and a mask of those inside its shape along `checked`."""
        block, parts = p.type.to, p.final().parts
        n, checked = len(block.shape), set(map(number_of, checked))
        shape, strides, offsets = (parts[1 + i * n : 1 + (i + 1) * n] for i in range(3))
        at, mask = self.create_splat(tensor_of(parts[0].type, block.shape), parts[0]), None
        places = []
        for axis, stride in enumerate(strides):
            where = self._along(block, axis, offsets[axis])
            places.append(where)
            step = self.create_mul(where, self.create_splat(where.type, stride))
            at = self.create_addptr(at, self.create_broadcast(step, block.shape))
        for axis in sorted(checked):
            where = places[axis]
            low = self.create_icmpSGE(where, self.create_splat(where.type, self.get_int64(0)))
            high = self.create_icmpSLT(where, self.create_splat(where.type, shape[axis]))
            inside = self.create_broadcast(self.create_and(low, high), block.shape)
            mask = inside if mask is None else self.create_and(mask, inside)
        return at, mask

    def _along(self, block, axis: int, offset):
        """Return an axis' indices in i64, with sides of one for the other axes."""
        side = block.shape[axis]
        line = tensor_of(I64, [side])
        where = self.create_int_cast(self.create_make_range(tensor_of(I32, [side]), 0, side), line, True)
        start = self.create_splat(line, offset)
        where = self.create_add(start, where)
        for other in range(len(block.shape)):
            where = where if other == axis else self.create_expand_dims(where, other)
        return where


def _cached(cache, evict) -> dict:
    return {"cache": f"{int(cache)} : i32", "evict": f"{int(evict)} : i32"}


def _ordered(order, scope) -> dict:
    return {"sem": f"{int(order)} : i32", "scope": f"{int(scope)} : i32"}
