"""Build shapes, products, reductions, scans, and a kernel's prints, assertions and assumptions."""

from .kinds import I32, number_of, quoted, tensor_of


def array_of(numbers) -> str:
    listed = ", ".join(str(number_of(n)) for n in numbers)
    return f"array<i32: {listed}>" if listed else "array<i32>"


class Tensors:
    def create_make_range(self, type, start, end):
        return self.one("tt.make_range", [], type, start=f"{start} : i32", end=f"{end} : i32")

    def create_reshape(self, v, shape, free):
        more = {"allow_reorder": "unit"} if free else {}
        return self.one("tt.reshape", [v], tensor_of(v.type.scalar, shape), **more)

    def create_expand_dims(self, v, axis):
        shape = [*v.type.shape]
        shape.insert(axis, 1)
        return self.one("tt.expand_dims", [v], tensor_of(v.type.scalar, shape), axis=f"{axis} : i32")

    def create_cat(self, a, b):
        return self.one("tt.cat", [a, b], tensor_of(a.type.scalar, [a.type.shape[0] + b.type.shape[0]]))

    def create_join(self, a, b):
        return self.one("tt.join", [a, b], tensor_of(a.type.scalar, [*a.type.shape, 2]))

    def create_split(self, v):
        shape = v.type.shape[:-1]
        out = tensor_of(v.type.scalar, shape) if shape else v.type.scalar
        return list(self.op("tt.split", [v], [out, out]).results)

    def create_trans(self, v, order):
        shape = [v.type.shape[number_of(n)] for n in order]
        return self.one("tt.trans", [v], tensor_of(v.type.scalar, shape), order=array_of(order))

    def create_broadcast(self, v, shape):
        return self.one("tt.broadcast", [v], tensor_of(v.type.scalar, shape))

    def create_splat(self, type, v):
        return self.one("tt.splat", [v], type)

    def create_unsplat(self, v):
        return self.one("tt.unsplat", [v], v.type.scalar)

    def create_gather(self, v, index, axis):
        return self.one("tt.gather", [v, index], index.type.like(v.type.scalar), axis=f"{axis} : i32")

    def create_histogram(self, v, bins, mask):
        given = [v] if mask is None else [v, mask]
        return self.one("tt.histogram", given, tensor_of(I32, [bins]))

    # products, reductions, scans

    def create_dot(self, a, b, c, precision, imprecise):
        how = {"inputPrecision": f"{int(precision)} : i32", "maxNumImpreciseAcc": f"{imprecise} : i32"}
        return self.one("tt.dot", [a, b, c], c.type, **how)

    def create_dot_scaled(self, a, a_scale, a_kind, b, b_scale, b_kind, fast, a_packed, b_packed, c):
        scales = [scale for scale in (a_scale, b_scale) if scale is not None]
        sizes = array_of([1, 1, 1, int(a_scale is not None), int(b_scale is not None)])
        how = {"a_elem_type": f"{int(a_kind)} : i32", "b_elem_type": f"{int(b_kind)} : i32"}
        flags = {"fastMath": fast, "lhs_k_pack": a_packed, "rhs_k_pack": b_packed}
        how |= {name: self.get_bool_attr(v) for name, v in flags.items()} | {"operandSegmentSizes": sizes}
        return self.one("tt.dot_scaled", [a, b, c, *scales], c.type, **how)

    def create_reduce(self, values, axis):
        outs = []
        for v in values:
            shape = v.type.shape[:axis] + v.type.shape[axis + 1 :]
            outs.append(tensor_of(v.type.scalar, shape) if shape else v.type.scalar)
        return self.op("tt.reduce", values, outs, regions=1, axis=f"{axis} : i32")

    def create_reduce_ret(self, *values):
        return self.op("tt.reduce.return", values)

    def create_scan(self, values, axis, reverse):
        how = {"axis": f"{axis} : i32", "reverse": self.get_bool_attr(reverse)}
        return self.op("tt.scan", values, [v.type for v in values], regions=1, **how)

    def create_scan_ret(self, *values):
        return self.op("tt.scan.return", values)

    def create_map_elementwise(self, values, types, pack):
        return self.op("tt.map_elementwise", values, types, regions=1, pack=f"{pack} : i32")

    def create_map_elementwise_ret(self, values):
        return self.op("tt.map_elementwise.return", values)

    # what a kernel says

    def create_print(self, prefix, hexadecimal, values, signed):
        how = {"prefix": quoted(prefix), "hex": self.get_bool_attr(hexadecimal)}
        self.op("tt.print", values, **how, isSigned=array_of(map(int, signed)))

    def create_assert(self, condition, message):
        self.op("tt.assert", [condition], message=quoted(message))

    def create_assume(self, condition):
        self.op("llvm.intr.assume", [condition], op_bundle_sizes="array<i32>")
