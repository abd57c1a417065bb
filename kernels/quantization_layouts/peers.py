"""Call other people's kernels for the same weight, for the benchmark, with one factory each, from the same codes as
ours."""

import torch

from kernels.bench.row import Absent
from kernels.quantization_layouts.checkpoints import PER_WORD
from kernels.quantization_layouts.dequantize import by_library, dequantize


def cublas(inputs):
    """Multiply with the 16-bit weight that the codes mean, by the library, which narrow weights must beat."""
    case, x = inputs["case"], inputs["x"]
    right = dequantize(inputs["packed"]).mT
    out = torch.empty(x.shape[0], case.n, dtype=x.dtype, device=x.device)
    return lambda: by_library(x, right, out, case.experts, case.m)


def int4pack(inputs):
    """Call torch's own 4-bit GEMM (tinygemm), for bf16 alone, with zero points moved into the scales' tensor."""
    case, x = inputs["case"], inputs["x"]
    if x.dtype != torch.bfloat16:
        raise Absent("takes bf16 alone")
    codes = inputs["codes"][0]
    pairs = (codes[:, ::2] << 4 | codes[:, 1::2]).contiguous()
    packed = torch._convert_weight_to_int4pack(pairs, 8)
    scales = inputs["scales"][0].t()
    # it computes (code - 8) * scale + zero
    zeros = torch.zeros_like(scales) if inputs["zeros"] is None else (8.0 - inputs["zeros"][0].t()) * scales
    both = torch.stack((scales, zeros.to(scales.dtype)), -1).contiguous()
    return lambda: torch._weight_int4pack_mm(x, packed, case.group, both)


def _gptq(inputs) -> torch.Tensor:
    """Return int32 (K / 8, N), which GPTQ packs and vLLM's repacking needs."""
    words = torch.zeros_like(inputs["codes"][0][:, ::PER_WORD], dtype=torch.int32)
    for i in range(PER_WORD):
        words |= inputs["codes"][0][:, i::PER_WORD].to(torch.int32) << 4 * i
    return words.t().contiguous()


def _vllm_takes(inputs):
    if inputs["zeros"] is not None:
        raise Absent("compared without zero points")


def marlin(inputs):
    """Call vLLM's Marlin, by the functions of vLLM's own GPTQ layers."""
    from vllm import _custom_ops as ops
    from vllm.model_executor.layers.quantization.utils import marlin_utils
    from vllm.scalar_type import scalar_types

    _vllm_takes(inputs)
    case, x = inputs["case"], inputs["x"]
    none = marlin_utils.marlin_make_empty_g_idx(x.device)
    weight = ops.gptq_marlin_repack(_gptq(inputs), none, case.k, case.n, 4)
    scales = marlin_utils.marlin_permute_scales(
        inputs["scales"][0].t().contiguous(), case.k, case.n, case.group
    )
    room = marlin_utils.marlin_make_workspace_new(x.device)
    return lambda: marlin_utils.apply_gptq_marlin_linear(
        x, weight, scales, none, none, none, room, scalar_types.uint4b8, case.n, case.k, True
    )


def machete(inputs):
    """vLLM's Machete, for Hopper."""
    from vllm import _custom_ops as ops
    from vllm.scalar_type import scalar_types

    _vllm_takes(inputs)
    case, x = inputs["case"], inputs["x"]
    columns = _gptq(inputs).t().contiguous().t()
    weight = ops.machete_prepack_B(columns, x.dtype, scalar_types.uint4b8, x.dtype)
    scales = inputs["scales"][0].t().contiguous()
    more = {"b_type": scalar_types.uint4b8, "b_group_scales": scales, "b_group_size": case.group}
    return lambda: ops.machete_mm(a=x, b_q=weight, **more)


def bitsandbytes(inputs):
    """Call its 4-bit GEMV with our levels for its codebook, for one row and blocks of its sizes."""
    from bitsandbytes import functional

    case, x = inputs["case"], inputs["x"]
    if case.m != 1 or case.bits != 4:
        raise Absent("its GEMV takes one row and four bits")
    codes = inputs["codes"][0].view(-1, 2)
    packed = (codes[:, 0] << 4 | codes[:, 1]).view(-1, 1)
    state = functional.QuantState(
        absmax=inputs["scales"][0].float().flatten(),
        shape=torch.Size((case.n, case.k)),
        code=inputs["levels"].float(),
        blocksize=case.group,
        quant_type="nf4",
        dtype=x.dtype,
    )
    return lambda: functional.gemv_4bit(x, packed.t(), state=state)


def of(case) -> dict:
    """Return the libraries that can run a case."""
    if case.kind == "int4" and case.experts == 1:
        return {"cuBLAS 16 bits": cublas, "int4pack": int4pack, "Marlin": marlin, "Machete": machete}
    if case.kind == "book" and case.experts == 1 and case.bits == 4:
        return {"cuBLAS 16 bits": cublas, "bitsandbytes": bitsandbytes}
    return {"cuBLAS 16 bits": cublas}
