"""Every rung computes the product; what each claims to change is in its machine code and in its bytes."""

from pathlib import Path

import pytest
import torch

from kernels.compare import relative_error
from kernels.gemm_tiling import reference
from kernels.gemm_tiling.cases import Case, operands
from kernels.gemm_tiling.ladder import bench as ladder_bench
from kernels.gemm_tiling.ladder import rungs
from kernels.tensors import to_numpy, to_torch
from kernels.tests.compiled import report

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HERE = rungs.runnable(torch.cuda.get_device_capability() if DEVICE == "cuda" else (9, 9))
ANOTHER = (
    "fp16" if DEVICE == "cuda" else pytest.param("fp16", marks=pytest.mark.slow)
)  # there a rung takes long
NAMED = {rung.name: rung for rung in rungs.RUNGS}
REGISTERS, THREADS, SHARED = 65536, 2048, 228 * 1024  # of an sm_90 multiprocessor; a program takes 1 KiB more


@pytest.fixture(scope="module")
def compiled():
    return report("kernels.gemm_tiling.ladder.tests.compile_all")


def product(rung, dtype="bf16", more=1):
    """(error, output) of a rung on three by two of its tiles, or a few rows where a tile is one row wide."""
    s = rung.setting
    case = Case(3 * s.block_m, 2 * s.block_n, 17 if s.block_k == 1 else 2 * s.block_k, dtype)
    a, b = operands(case, seed=more)
    out = torch.full((case.m, case.n), float("nan"), device=DEVICE).to(to_torch(a).dtype)
    rung.run(to_torch(a, DEVICE), to_torch(b, DEVICE), out)
    return relative_error(to_numpy(out), reference.gemm(a, b)), out


@pytest.mark.parametrize("rung", HERE, ids=lambda r: r.name)
@pytest.mark.parametrize("dtype", ("bf16", ANOTHER))
def test_every_rung_is_the_product(rung, dtype):
    assert product(rung, dtype)[0] < {"bf16": 4e-3, "fp16": 6e-4}[dtype]


def test_the_walk_in_groups_reaches_every_tile_also_of_a_group_cut_off():
    """11 rows of tiles in groups of 8."""
    rung = NAMED["grouped"]
    s = rung.setting
    a, b = operands(Case(11 * s.block_m, 3 * s.block_n, s.block_k, "bf16"))
    out = torch.full((a.shape[0], b.shape[1]), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    rung.run(to_torch(a, DEVICE), to_torch(b, DEVICE), out)
    assert relative_error(to_numpy(out), reference.gemm(a, b)) < 4e-3


def test_sizes_and_layouts_without_whole_tiles_are_refused():
    x, out = torch.zeros(128, 100), torch.zeros(128, 128)
    with pytest.raises(ValueError, match="^N must be a multiple of 64, got 100; "):
        NAMED["tiles"].run(torch.zeros(128, 128), x.t().contiguous().t().reshape(128, 100), out)
    with pytest.raises(ValueError, match=r"^b must be contiguous, got strides \(1, 128\); "):
        NAMED["tiles"].run(torch.zeros(128, 128), torch.zeros(128, 128).t(), out)


def test_nothing_spills_and_as_many_programs_are_resident_as_said(compiled):
    for name, facts in compiled.items():
        rung = NAMED[name]
        assert facts["spilled"] == 0, name
        threads = 32 * rung.setting.warps
        if rung.hopper:  # two multiplying warpgroups and a warp that fetches, with their own registers
            assert facts["shared"] <= 227 * 1024 < 2 * facts["shared"] and rung.resident == 1
            continue
        registers = -(-facts["registers"] // 8) * 8
        fits = min(REGISTERS // (registers * threads), THREADS // threads, SHARED // (facts["shared"] + 1024))
        assert rung.resident == fits, name


def test_each_rung_uses_the_unit_that_it_names(compiled):
    for name in ("naive", "coalesced", "tiles", "grouped"):
        assert compiled[name]["wgmma"] == compiled[name]["mma"] == 0, f"{name} must stay on the CUDA cores"
    for name, facts in list(compiled.items())[4:]:
        assert facts["wgmma"] > 0, name
        assert (facts["tma"] > 0) == (NAMED[name].file not in ("tensor_cores",)), name
    assert compiled["stages"]["shared"] == 3 * compiled["tensor cores"]["shared"], (
        "three tiles instead of one"
    )


def test_bytes_fall_with_reuse():
    n = 4096
    asked = {rung.name: rung.bytes_asked() for rung in rungs.RUNGS}
    assert asked["naive"] == asked["coalesced"] == 2 * (n**3 + n**3 // 128 + n**2)
    assert asked["tiles"] == asked["grouped"] == 2 * (2 * n**3 // 64 + n**2)
    assert asked["tensor cores"] == asked["TMA"] == 2 * (2 * n**3 // 128 + n**2)
    hbm = {rung.name: rung.bytes_hbm(132) for rung in rungs.RUNGS}
    assert all(hbm[name] <= asked[name] for name in asked)


def test_groups_save_what_the_table_says_nothing_at_4096_a_quarter_at_8192():
    hbm = {rung.name: rung.bytes_hbm(132) for rung in rungs.RUNGS}
    assert hbm["grouped"] == pytest.approx(hbm["tiles"], rel=0.02)
    assert hbm["groups at 8192"] < 0.8 * hbm["row by row at 8192"]


def test_rows_of_the_benchmark_hold_what_a_picture_needs():
    """Each rung names a file that is there, its lever and its tile, and moves no less than each matrix once."""
    folder = Path(rungs.__file__).parents[1]
    for rung in rungs.RUNGS:
        facts = ladder_bench.described(rung, 132)
        assert (folder / facts["file"]).exists() and facts["lever"] and len(facts["tile"]) == 3
        assert 3 * 2 * rung.size**2 <= facts["bytes_hbm"] <= facts["bytes_asked"]
    assert [ladder_bench.described(NAMED[name], 132)["sectors"] for name in ("naive", "coalesced")] == [32, 2]


def test_a_gpu_gets_the_rungs_that_it_can_run():
    names = {cc: [r.name for r in rungs.runnable(cc)] for cc in ((8, 0), (9, 0), (10, 0))}
    assert names[8, 0] == ["naive", "coalesced", "tiles", "grouped", "tensor cores", "stages"]
    assert names[9, 0] == [r.name for r in rungs.RUNGS]
    assert names[10, 0][-1] == "groups at 8192"
