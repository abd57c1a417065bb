"""The map of lanes against the words of the PTX ISA, and against the layout that the kernels read."""

import numpy as np
import pytest

from kernels.quantization_layouts import cost_fragments as fragments

ALL = [(lane, i) for lane in range(32) for i in range(8)]


def test_the_map_is_what_the_ptx_isa_writes():
    """Its section on the matrix fragments of mma.m16n8k16, .f16: groupID = laneid >> 2, threadID_in_group = laneid % 4."""
    for lane, i in ALL:
        group, thread = lane >> 2, lane % 4
        row = group if (0 <= i < 2) or (4 <= i < 6) else group + 8
        column = thread * 2 + (i & 1) if i < 4 else thread * 2 + (i & 1) + 8
        assert fragments.fragment_element(lane, i) == (row, column)


def test_every_element_has_one_owner():
    assert len({fragments.fragment_element(*one) for one in ALL}) == 256
    for one in ALL:
        assert fragments.fragment_owner(*fragments.fragment_element(*one)) == one


def test_a_register_holds_neighbours_and_a_word_has_them_16_bits_apart():
    assert sorted(map(fragments.nibble_of, range(8))) == list(range(8))
    for lane in range(32):
        for first in range(0, 8, 2):
            (row, column), after = (fragments.fragment_element(lane, first + more) for more in (0, 1))
            assert after == (row, column + 1)
            assert fragments.nibble_of(first + 1) - fragments.nibble_of(first) == 4


def test_the_kernels_words_follow_the_map():
    torch = pytest.importorskip("torch")
    from kernels.quantization_layouts import packed

    codes = np.random.default_rng(0).integers(0, 16, (128, 64), dtype=np.uint8)
    (words,) = packed.shuffle(torch.from_numpy(codes)[None], 4, pairs_adjacent=False)
    words = words[0, :, 0].numpy().view(np.uint32)  # (brick, lane, word)
    for brick, (lane, word, i) in ((b, (n, w, i)) for b in range(8) for w in range(4) for n, i in ALL):
        row, column = fragments.fragment_element(lane, i)
        wanted = codes[16 * brick + row, 16 * word + column]
        assert words[brick, lane, word] >> 4 * fragments.nibble_of(i) & 15 == wanted


@pytest.mark.parametrize(
    "call", (lambda: fragments.fragment_element(32, 0), lambda: fragments.fragment_owner(0, 16))
)
def test_what_a_tile_has_not_is_refused(call):
    with pytest.raises(ValueError, match="must be from 0 to"):
        call()


def test_one_shift_suffices_in_fp16_and_not_in_bf16():
    """Run both sequences on every word of two codes: exact in fp16, and 16 code doesn't fit beside bf16's 128."""
    codes = np.arange(16, dtype=np.uint16)
    low = (codes | 0x6400).view(np.float16) - np.float16(1032)
    high = (codes << 4 | 0x6400).view(np.float16).astype(np.float64) / 16 - 72
    assert low.tolist() == high.tolist() == [code - 8 for code in range(16)]
    in_bf16 = ((codes << 4 | 0x4300).astype(np.uint32) << 16).view(np.float32)
    assert in_bf16.tolist() != [128 + 16 * code for code in range(16)]
    whole = {dtype: fragments.unpack_instructions(dtype) for dtype in ("fp16", "bf16")}
    assert (whole["fp16"]["lop3"] + whole["fp16"]["shift"]) / 8 == 0.625
    assert (whole["bf16"]["lop3"] + whole["bf16"]["shift"]) / 8 == 0.875


def test_a_word_of_marlins_is_a_word_of_ours():
    """Marlin's README and packer: W is the 8-wide operand, so lane n holds rows 2 (n % 4) + (0, 1, 8, 9) of K for output n / 4,
    then for output n / 4 + 8, and puts element (0, 2, 4, 6, 1, 3, 5, 7)[j] of these eight into nibble j."""
    for lane in range(32):
        eight = [(lane // 4 + 8 * b, 2 * (lane % 4) + k) for b in (0, 1) for k in (0, 1, 8, 9)]
        for nibble, element in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            i = next(i for i in range(8) if fragments.nibble_of(i) == nibble)
            assert fragments.fragment_element(lane, i) == eight[element]
