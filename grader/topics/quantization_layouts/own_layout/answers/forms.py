"""List right answers to *own layout* in other forms."""

from grader.topics.quantization_layouts.own_layout.mistakes import PLANES
from grader.topics.quantization_layouts.own_layout.mistakes import tile
from grader.topics.quantization_layouts.shared_mistakes_kbit import DOT
from grader.topics.quantization_layouts.shared_mistakes_kbit import NUMBER

FORMS = {
        "thirty bits of a word": ((), "own_thirty_bits"),
        "K first, the top bit in an array of its own": ((), "own_k_first"),
        "planes": (("unpacking",), PLANES),
        "words without a sign": ((), [(".view(np.int32)", ""), ('p.K * p.BITS // 32), "i32")', 'p.K * p.BITS // 32), "u32")'), ("(LOW * tl.arange(0, COUNT))[None, None, :]", "(LOW * tl.arange(0, COUNT)).to(tl.uint32)[None, None, :]"), (">> tl.arange(0, 32)[None, None, :]", ">> tl.arange(0, 32).to(tl.uint32)[None, None, :]"), ("code * stride_cl", "code.to(tl.int32) * stride_cl")]),
        "packed by numpy's own bits": ((), [("        each = field.reshape(len(codes), -1, 32 // width).astype(np.uint32)\n        words.append((each << (width * np.arange(32 // width, dtype=np.uint32))).sum(-1, dtype=np.uint32))", "        each = np.unpackbits(field.astype(np.uint8)[..., None], axis=2, bitorder='little')[:, :, :width]\n        words.append(np.ascontiguousarray(np.packbits(each.reshape(len(codes), -1), axis=1, bitorder='little')).view('<u4'))")]),
        "scales one behind the other": ((), [('"scales": scales}', '"scales": np.asarray(scales).ravel()}'), ('((p.N, p.K // 32), p.dtypes["x"])', '(p.N * p.K // 32, p.dtypes["x"])'), ("stride_words0, stride_scales0", "stride_words0"), ("offs_n[:, None] * stride_scales0", "offs_n[:, None] * (K // 32)")]),
        "scaled in 16 bits": ((), [(NUMBER, "number = level * s[:, :, None]")]),
        "added, not accumulated": ((), [(DOT, "acc += tl.dot(weight, x)")]),
        "sixteen rows of W": (("traffic",), tile(16, 256)),
    }
