"""Wrong answers to the numpy questions, each a cell: the suites hand it in, and the report computes with it.

(sentence, the cell's body) by question and mistake; ENTRY holds what the body stands in.
"""

from grader.questions.cells import Cells

ENTRY = {
    "pack_words": "codes",
    "unpack_words": "words",
    "to_planes": "codes, bits",
    "quantize_groups": "w, group, zero_points",
    "quantization_error": "w, codes, scales, zeros, group",
    "layer_bytes": "m, n, k, bits, group, zero_bits",
    "dispatch": "rows, measured, gemv_rows, dense_kept",
    "step_times": "m, weights, bits, unpack_s, tile_rows, peak, bandwidth",
}
PACK = """eights = {eights}.astype(np.uint32)
return (eights << {shifts}).sum(-1, dtype=np.uint32)"""
EIGHTS, SHIFTS = "codes.reshape(len(codes), -1, 8)", "(4 * np.arange(8, dtype=np.uint32))"


def pack(eights: str = EIGHTS, shifts: str = SHIFTS) -> str:
    return PACK.format(eights=eights, shifts=shifts)


PLANES = """n, k = codes.shape
each = codes.reshape(n, k // 32, 32).astype(np.uint32)
lanes = {lanes}
return np.{join}([(({bit}) << lanes).sum(-1, dtype=np.uint32) for b in {order}]{axis})"""
RIGHT_PLANES = {
    "lanes": "np.arange(32, dtype=np.uint32)",
    "join": "stack",
    "bit": "each >> np.uint32(b) & np.uint32(1)",
    "order": "range(bits)",
    "axis": "",
}


def planes(**changed: str) -> str:
    return PLANES.format(**RIGHT_PLANES | changed)


QUANTIZE = """blocks = w.reshape(len(w), -1, group)
low, high = {low}, {high}
wide = {wide} if zero_points else {symmetric}
scales = wide.astype(np.float16)
kept = {kept}.astype(float)
step = {step}
zeros = {zeros} if zero_points else np.full(scales.shape, 8.0)
codes = {rounded} + zeros[..., None]
codes = {cut}
return codes.reshape(w.shape).astype(np.uint8), scales, zeros.astype(np.uint8)"""
RIGHT_QUANTIZE = {
    "low": "np.minimum(blocks.min(-1), 0)",
    "high": "np.maximum(blocks.max(-1), 0)",
    "wide": "(high - low) / 15",
    "symmetric": "np.abs(blocks).max(-1) / 7",
    "kept": "scales",
    "step": "np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)",
    "zeros": "np.clip(np.rint(-low * step), 0, 15)",
    "rounded": "np.rint(blocks * step[..., None])",
    "cut": "np.clip(codes, 0 if zero_points else 1, 15)",
}


def quantize(**changed: str) -> str:
    return QUANTIZE.format(**RIGHT_QUANTIZE | changed)


ERROR = """s, z = {s}, {z}
stands = {stands}
off = stands - w
return {relative}, {steps}"""
RIGHT_ERROR = {
    "s": "np.repeat(scales.astype(float), group, 1)",
    "z": "np.repeat(zeros.astype(float), group, 1)",
    "stands": "(codes.astype(float) - z) * s",
    "relative": "np.sqrt((off**2).sum() / (w**2).sum())",
    "steps": "(np.abs(off) / s).max()",
}


def error(**changed: str) -> str:
    return ERROR.format(**RIGHT_ERROR | changed)


BYTES = "groups = {groups}\nreturn {weight} + {metadata} + {activations}"
RIGHT_BYTES = {
    "groups": "n * math.ceil(k / group)",
    "weight": "n * k * bits / 8",
    "metadata": "groups * (16 + zero_bits) / 8",
    "activations": "2 * (m * k + m * n)",
}


def layer(**changed: str) -> str:
    return BYTES.format(**RIGHT_BYTES | changed)


TIMES = """arithmetic, unpack = {arithmetic}, {unpack}
return {dense}, {packed}"""
RIGHT_TIMES = {
    "arithmetic": "2 * m * weights / peak",
    "unpack": "weights * unpack_s * math.ceil(m / tile_rows)",
    "dense": "max(2 * weights / bandwidth, arithmetic)",
    "packed": "max(weights * bits / 8 / bandwidth, arithmetic + unpack)",
}


def times(**changed: str) -> str:
    return TIMES.format(**RIGHT_TIMES | changed)


DISPATCH = """known = sorted({{m for m, _, _ in measured}})
at = {at}
valid = [(us, place, name) for place, (m, name, us) in enumerate(measured) if m == at and {valid}]
return {best}(valid)[2]"""
RIGHT_DISPATCH = {
    "at": "next((m for m in known if m >= rows), known[-1])",
    "valid": '(name != "gemv" or rows <= gemv_rows) and (name != "dense" or dense_kept)',
    "best": "min",
}


def choose(**changed: str) -> str:
    return DISPATCH.format(**RIGHT_DISPATCH | changed)


TABLE = {
    "pack_words": {
        "first code on top": (
            "the first of eight codes stands in the lowest four bits of its word, here it stands in the highest",
            pack(shifts="(28 - 4 * np.arange(8, dtype=np.uint32))"),
        ),
        "bytes turned round": (
            "the two codes of each byte have changed places: the first stands in the lower half",
            pack(shifts="(4 * np.array([1, 0, 3, 2, 5, 4, 7, 6], np.uint32))"),
        ),
        "far apart": (
            "a word holds eight neighbours, columns 8 i to 8 i + 7; here its codes lie K / 8 columns apart",
            pack(eights="codes.reshape(len(codes), 8, -1).swapaxes(1, 2)"),
        ),
        "evens first": (
            "a word holds its eight neighbours in their order; here the even columns come first",
            pack(eights="codes.reshape(len(codes), -1, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]]"),
        ),
        "shifted in eight bits": (
            "a shift of a uint8 stays in eight bits and loses what leaves them: widen the codes to uint32 first",
            "eights = codes.reshape(len(codes), -1, 8)\nreturn (eights << (4 * np.arange(8, dtype=np.uint8))).astype(np.uint32).sum(-1, dtype=np.uint32)",
        ),
        "eight bits a code": (
            "a code takes four bits, so the next one is shifted by four more: here it is eight",
            pack(shifts="(8 * np.arange(8, dtype=np.uint32))"),
        ),
    },
    "unpack_words": {
        "nothing cut off": (
            "shifted down a word still holds the codes above: keep its lowest four bits, & 15",
            "each = words[..., None] >> (4 * np.arange(8, dtype=np.uint32))\nreturn each.reshape(len(words), -1)",
        ),
        "first code on top": (
            "the first of eight codes stands in the lowest four bits of its word, here it is looked for in the highest",
            "each = words[..., None] >> (28 - 4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)\nreturn each.reshape(len(words), -1)",
        ),
        "side by side": (
            "the eight codes of a word are neighbours; here all first codes come before all second ones",
            "return np.concatenate([words >> np.uint32(4 * j) & np.uint32(15) for j in range(8)], axis=1)",
        ),
        "eight bits kept": (
            "& 255 keeps two codes: four bits are & 15",
            "each = words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(255)\nreturn each.reshape(len(words), -1)",
        ),
        "four codes a word": (
            "a word holds eight codes: here each byte gives one",
            "each = words[..., None] >> (8 * np.arange(4, dtype=np.uint32)) & np.uint32(15)\nreturn each.reshape(len(words), -1)",
        ),
    },
    "to_planes": {
        "highest bit first": (
            "plane 0 holds the lowest bit of every code, here it holds the highest",
            planes(order="reversed(range(bits))"),
        ),
        "first column on top": (
            "the first of 32 columns is bit 0 of its word, here it is bit 31",
            planes(lanes="np.arange(31, -1, -1).astype(np.uint32)"),
        ),
        "planes last": ("the planes come first: (bits, N, K / 32)", planes(axis=", -1")),
        "nothing cut off": (
            "a plane holds one bit of each code: after the shift keep & 1",
            planes(bit="each >> np.uint32(b)"),
        ),
        "four planes always": (
            "there are as many planes as a code has bits, not four",
            planes(order="range(4)"),
        ),
        "strided columns": (
            "a word holds 32 neighbours; here its columns lie K / 32 apart",
            planes().replace("reshape(n, k // 32, 32)", "reshape(n, 32, k // 32).swapaxes(1, 2)"),
        ),
        "shifted in eight bits": (
            "a shift of a uint8 stays in eight bits, so columns 8 to 31 are lost: widen the bits to uint32 before you shift them up",
            planes()
            .replace(".astype(np.uint32)\nlanes", "\nlanes")
            .replace("each >> np.uint32(b) & np.uint32(1)", "each >> np.uint8(b) & np.uint8(1)")
            .replace("dtype=np.uint32)\nreturn", "dtype=np.uint8)\nreturn"),
        ),
    },
    "quantize_groups": {
        "an eighth": (
            "without zero points the codes 1 to 15 stand for -7 to 7 times the scale: the largest magnitude is 7 of them, not 8",
            quantize(symmetric="np.abs(blocks).max(-1) / 8"),
        ),
        "a fifteenth": (
            "without zero points the largest magnitude is 7 steps from zero: a fifteenth of the range is for zero points",
            quantize(symmetric="(high - low) / 15"),
        ),
        "the scale before rounding": (
            "the codes are found with a scale that is not stored: round it to fp16 first, then divide",
            quantize(kept="wide"),
        ),
        "scales in float64": (
            "scales are stored in fp16, these have more digits: .astype(np.float16), and then divide by what is stored",
            quantize().replace(".astype(np.float16)", ""),
        ),
        "divided in fp16": (
            "one over the scale is rounded to fp16 as well: widen the stored scale to float64, then divide",
            quantize(
                step="np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0).astype(np.float16).astype(float)"
            ),
        ),
        "cut off, not rounded": (
            "codes are rounded to the nearest, here what is behind the point is dropped",
            quantize(rounded="np.trunc(blocks * step[..., None])"),
        ),
        "zero not in range": (
            "the range must hold 0, or the zero point is none of the sixteen codes: low is at most 0, high at least 0",
            quantize(low="blocks.min(-1)", high="blocks.max(-1)"),
        ),
        "the range from 0 up": (
            "the range must hold 0, or the zero point is none of the sixteen codes: high is at least 0, also where every weight is below",
            quantize(high="blocks.max(-1)"),
        ),
        "a zero point beyond the codes": (
            "a stored scale that was rounded down puts -low / scale beyond 15: clip the zero point to 0..15 as well",
            quantize(zeros="np.rint(-low * step)"),
        ),
        "halves upwards": (
            "of two codes that are equally near np.rint takes the even one: np.floor(x + 0.5) takes the larger",
            quantize(rounded="np.floor(blocks * step[..., None] + 0.5)"),
        ),
        "halves of zero points upwards": (
            "of two codes that are equally near np.rint takes the even one for a zero point too: np.floor(x + 0.5) takes the larger",
            quantize(zeros="np.clip(np.floor(-low * step + 0.5), 0, 15)"),
        ),
        "the sum rounded": (
            "w / scale is rounded by itself and the zero point is added then: of two codes equally near, rounding the sum may take the other",
            quantize(
                rounded="(np.rint(blocks * step[..., None] + zeros[..., None]) - zeros[..., None])",
            ),
        ),
        "the zero point before rounding": (
            "the zero point is rounded by itself, then added: rounded together with the weight it gives other codes",
            quantize(
                rounded="np.rint(blocks * step[..., None] - (low * step)[..., None])",
                cut="np.clip(codes - zeros[..., None], 0, 15) if zero_points else np.clip(np.rint(blocks * step[..., None]) + 8, 1, 15)",
            ),
        ),
        "not clipped": (
            "a scale that is rounded down lets its largest weight reach beyond the codes: clip to 0..15, and to 1..15 without zero points",
            quantize(cut="codes % 256"),
        ),
        "no zero points": (
            "asked for zero points, this has the symmetric codes",
            quantize(
                wide="np.abs(blocks).max(-1) / 7",
                zeros="np.full(scales.shape, 8.0)",
                cut="np.clip(codes, 1, 15)",
            ),
        ),
        "divided by no scale": (
            "in a group whose stored scale is 0 every code is the zero point: here it is 0 / 0, which is no number",
            quantize(
                step="np.where(kept > 0, 1 / np.where(kept > 0, kept, 1), np.inf)",
                zeros="np.nan_to_num(np.clip(np.rint(-low * step), 0, 15))",
                cut="np.nan_to_num(np.clip(codes, 0 if zero_points else 1, 15))",
            ),
        ),
        "zero point from the top": (
            "the zero point is the code that stands for 0, so low lies that many steps below it: -low / scale",
            quantize(zeros="np.clip(np.rint(high * step), 0, 15)"),
        ),
    },
    "quantization_error": {
        "no zero point": (
            "the zero point is not subtracted: a weight is (code - zero) times its scale",
            error(stands="codes.astype(float) * s"),
        ),
        "subtracted in uint8": (
            "code - zero is below 0 for half of the codes and uint8 has no -1: widen both before you subtract",
            error(z="np.repeat(zeros, group, 1)", stands="(codes - z) * s"),
        ),
        "subtracted in uint8, scaled in fp16": (
            "code - zero is below 0 for half of the codes and uint8 has no -1: widen codes, zero points and scales first",
            error(s="np.repeat(scales, group, 1)", z="np.repeat(zeros, group, 1)", stands="(codes - z) * s"),
        ),
        "eight always": (
            "the zero point is not always 8: each group has its own",
            error(stands="(codes.astype(float) - 8) * s"),
        ),
        "groups taken in turns": (
            "neighbours share a scale: repeat each scale `group` times, one after the other, rather than the row of scales",
            error(
                s="np.tile(scales.astype(float), (1, group))", z="np.tile(zeros.astype(float), (1, group))"
            ),
        ),
        "no root": (
            "this is the ratio of the squares: a root is missing",
            error(relative="(off**2).sum() / (w**2).sum()"),
        ),
        "of magnitudes": (
            "the root of the mean square is asked for: this is a ratio of mean magnitudes",
            error(relative="np.abs(off).sum() / np.abs(w).sum()"),
        ),
        "not relative": (
            "the error is asked for as a share of the weights' own root mean square",
            error(relative="np.sqrt((off**2).mean())"),
        ),
        "of the weights it gives": (
            "the share is of w as it was, not of what the codes stand for",
            error(relative="np.sqrt((off**2).sum() / (stands**2).sum())"),
        ),
        "the largest in no steps": (
            "the second number counts in steps: each error over its own group's scale",
            error(steps="np.abs(off).max()"),
        ),
        "in steps of the largest scale": (
            "each error counts in steps of its own group's scale, and the largest of these is asked for: this is the largest error over the largest scale",
            error(steps="np.abs(off).max() / s.max()"),
        ),
    },
    "layer_bytes": {
        "bits for bytes": (
            "a weight has `bits` bits: eight of them are a byte",
            layer(weight="n * k * bits"),
        ),
        "a scale a row": (
            "each row has a scale for every group of its k weights, here it has one",
            layer(groups="n"),
        ),
        "the last group left out": (
            "a last group that is not full has its scale too: round up",
            layer(groups="n * (k // group)"),
        ),
        "no zero points": (
            "zero points cross the memory too: zero_bits for each group",
            layer(metadata="groups * 2"),
        ),
        "a byte a zero point": (
            "a zero point has zero_bits bits, here it has a byte",
            layer(metadata="groups * (2 + (zero_bits > 0))"),
        ),
        "no output": ("Y is written: m n numbers of two bytes are missing", layer(activations="2 * m * k")),
        "activations packed too": (
            "X and Y stay in 16 bits: only the weight is packed",
            layer(activations="(m * k + m * n) * bits / 8"),
        ),
        "sixteen bits": ("this is the layer with 16-bit weights", layer(weight="2 * n * k", metadata="0")),
    },
    "step_times": {
        "added up": (
            "bytes and arithmetic overlap: the longer of the two counts, not their sum",
            times(
                dense="2 * weights / bandwidth + arithmetic",
                packed="weights * bits / 8 / bandwidth + arithmetic + unpack",
            ),
        ),
        "unpacking hidden": (
            "unpacking runs on the same units as the arithmetic here, so it adds to it and hides under the stream alone",
            times(packed="max(weights * bits / 8 / bandwidth, arithmetic, unpack)"),
        ),
        "unpacking exposed": (
            "unpacking hides under the stream of weights: it adds to the arithmetic, not to the whole",
            times(packed="max(weights * bits / 8 / bandwidth, arithmetic) + unpack"),
        ),
        "unpacked once": (
            "each tile of tile_rows rows unpacks all weights for itself: once for every tile, the last one too",
            times(unpack="weights * unpack_s"),
        ),
        "unpacked for every row": (
            "rows of one tile share an unpacking: it is paid once for every tile_rows rows",
            times(unpack="weights * unpack_s * m"),
        ),
        "part of a tile": (
            "a tile that is part full unpacks all weights: round the number of tiles up",
            times(unpack="weights * unpack_s * m / tile_rows"),
        ),
        "bits for bytes": (
            "a weight has `bits` bits: eight of them are a byte",
            times(packed="max(weights * bits / bandwidth, arithmetic + unpack)"),
        ),
        "whole bits": (
            "`bits` is a weight's share of everything, scales included, and no whole number: it is taken as it is",
            times(packed="max(weights * (bits // 1) / 8 / bandwidth, arithmetic + unpack)"),
        ),
        "bits rounded": (
            "`bits` is a weight's share of everything, scales included, and no whole number: it is taken as it is",
            times(packed="max(weights * round(bits) / 8 / bandwidth, arithmetic + unpack)"),
        ),
        "one FLOP": ("a multiply-add counts as two FLOP", times(arithmetic="m * weights / peak")),
        "other order": (
            "the dense time comes first",
            "arithmetic, unpack = 2 * m * weights / peak, weights * unpack_s * math.ceil(m / tile_rows)\nreturn max(weights * bits / 8 / bandwidth, arithmetic + unpack), max(2 * weights / bandwidth, arithmetic)",
        ),
    },
    "dispatch": {
        "fast but invalid": (
            "the gemv takes at most gemv_rows rows: beyond them it may be as fast as it likes",
            choose(valid='(name != "dense" or dense_kept)'),
        ),
        "one row fewer for the gemv": (
            "the gemv takes up to gemv_rows rows, these with them",
            choose(valid='(name != "gemv" or rows < gemv_rows) and (name != "dense" or dense_kept)'),
        ),
        "what is not kept": (
            "without a 16-bit copy in memory there is no dense kernel to call",
            choose(valid='(name != "gemv" or rows <= gemv_rows)'),
        ),
        "the measurement below": (
            "between two measured numbers of rows the larger one holds, where packed weights have less to win: this takes the smaller",
            choose(at="max((m for m in known if m <= rows), default=known[0])"),
        ),
        "the nearest measurement": (
            "between two measured numbers of rows the larger one holds, where packed weights have less to win: this takes the nearer",
            choose(at="min(known, key=lambda m: (abs(m - rows), m))"),
        ),
        "the measurement after": (
            "a number of rows that was measured stands for itself: this takes the next larger one",
            choose(at="next((m for m in known if m > rows), known[-1])"),
        ),
        "the fastest of all": (
            "only what was measured at the number of rows that stands for yours can be compared: this takes a smaller time, of other rows",
            choose().replace("m == at and ", ""),
        ),
        "the slowest": ("this is the slowest of them", choose(best="max")),
        "in the order of the list": (
            "the table is in no order: sort its numbers of rows before you look for the first that is not below",
            choose().replace(
                "sorted({m for m, _, _ in measured})", "list(dict.fromkeys(m for m, _, _ in measured))"
            ),
        ),
        "the last one listed": (
            "the table is in no order: beyond the last measured number of rows the largest holds, wherever it stands",
            choose(at="next((m for m in known if m >= rows), measured[-1][0])"),
        ),
        "anybody beyond the last": (
            "beyond the last measured number of rows the last holds, and who may not run there may not run here either",
            choose(
                valid='(rows > known[-1] or (name != "gemv" or rows <= gemv_rows) and (name != "dense" or dense_kept))'
            ),
        ),
        "whatever was measured": (
            "what the gemv may do depends on the rows there are, not on the row of the table that stands for them",
            choose(valid='(name != "gemv" or at <= gemv_rows) and (name != "dense" or dense_kept)'),
        ),
    },
}

CELLS = Cells(ENTRY, TABLE)
MADE = CELLS.made("quantization_layouts")
