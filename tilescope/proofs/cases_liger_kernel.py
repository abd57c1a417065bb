"""List cases of liger_kernel, for its autograd functions, forward and backward, on small inputs."""

import torch

from . import expressions

TABLE = """
f.liger_cross_entropy(x(32, 100), ids(32, 100))
f.liger_cross_entropy(x(32, 100), ids(32, 100), x(100).detach().abs(), -100, 1e-4, 0.1, "mean", 30.0, True)
f.liger_fused_linear_cross_entropy(x(32, 64), x(100, 64), ids(32, 100), x(100))
f.liger_fused_linear_jsd(x(32, 64), x(100, 64), x(32, 64).detach(), x(100, 64).detach(), ids(32, 100))
f.liger_geglu(x(32, 64), x(32, 64))
f.liger_swiglu(x(32, 64), x(32, 64))
f.liger_group_norm(x(2, 8, 64), x(8), x(8), 8, 2, 1e-6)
f.liger_jsd(x(32, 100).log_softmax(-1), x(32, 100).log_softmax(-1).detach(), ids(32, 100))
f.liger_kl_div(x(32, 100).log_softmax(-1), x(32, 100).softmax(-1).detach())
f.liger_sparsemax(x(32, 100))
f.liger_multi_token_attention(x(1, 2, 32, 32), x(2, 2, 3, 3), x(2), 1, 1)
f.liger_multi_token_attention(x(1, 2, 32, 32), x(2, 2, 3, 3), x(2), 1, 1, 1, 1, True)
f.liger_fused_neighborhood_attention(x(1, 2, 32, 32), x(1, 2, 32, 32), x(1, 2, 32, 32))
f.liger_tvd(x(32, 100).softmax(-1), x(32, 100).softmax(-1).detach())
f.liger_tvd(x(32, 100).softmax(-1), x(32, 100).softmax(-1).detach(), ids(32, 100))
f.liger_layer_norm(x(32, 64), x(64), x(64), 1e-6)
f.liger_qwen2vl_mrope(x(1, 2, 16, 32), x(1, 2, 16, 32), x(3, 1, 16, 32).detach(), x(3, 1, 16, 32).detach(), [4, 6, 6])
f.liger_relu_squared(x(32, 64))
f.liger_rms_norm(x(32, 64), x(64), 1e-6)
f.liger_rms_norm(x(32, 64), x(64), 1e-6, 1.0, "gemma")
ops.LigerRMSNormFunction.apply(x(4096, 64), x(64), 1e-6, 0.0, "llama", True, False)
f.liger_modulated_rms_norm(x(2, 16, 64), x(64), x(2, 64), x(2, 64), 1e-6)
f.liger_poly_norm(x(32, 64), x(3), torch.zeros((), requires_grad=True))
f.liger_fused_add_rms_norm(x(32, 64), x(32, 64), x(64), 1e-6)
f.liger_rope(x(1, 2, 16, 32), x(1, 2, 16, 32), x(1, 16, 32).detach(), x(1, 16, 32).detach())
f.liger_softmax(x(32, 100))
f.liger_softmax(x(2, 40000))
f.liger_dyt(x(32, 64), x(1), x(64), x(64))
f.liger_mhc_pre(x(16, 4, 32), x(16, 4))
f.liger_mhc_post_res(x(16, 4, 32), x(16, 32), x(16, 4), x(16, 4, 4))
f.liger_mhc_coeffs(x(16, 4, 32), x(128, 24), x(24), scalar(), scalar(), scalar(), allow_fp32=True)
f.liger_attn_res(x(3, 1, 16, 64), x(64), x(64))
ops.LigerLlama4RopeFunction.apply(x(1, 16, 2, 32), x(1, 16, 2, 32), torch.polar(torch.ones(16, 16), torch.randn(16, 16)))
ops.LigerEmbeddingFunction.apply(x(100, 64), ids(32, 100))
ops.LigerFusedMoEFunction.apply(x(32, 64), x(4, 128, 64), x(4, 64, 64), ids(64, 4).reshape(32, 2).int(), x(32, 2).softmax(-1))
ops.LigerFusedCETVDFunction.apply(x(32, 100), x(32, 100).detach(), ids(32, 100))
ops.LigerFusedGateUpSiLUMulFunction.apply(x(32, 128))
ops.LigerVocabParallelCEFunction.apply(x(8, 4, 100), ids(32, 100).reshape(8, 4), None, -100, 0.0, "none", "none")
ops.LigerFusedLinearKLDivFunction.apply(x(32, 64), x(100, 64), x(32, 100).softmax(-1).detach(), ids(32, 100))
ops.GrpoLossFunction.apply(x(2, 17, 100), x(2, 16).detach(), x(2, 16).detach(), ids(32, 100).reshape(2, 16), x(2).detach(), torch.ones(2, 16, dtype=torch.int32), 0.9, 0.04, 0.2, 0.4, False)
ops.experimental.mm_int8int2.matmul(torch.randint(-127, 127, (32, 1024), dtype=torch.int8), torch.randint(0, 255, (256, 32), dtype=torch.uint8))
"""


def inputs() -> dict:
    import liger_kernel.ops
    import liger_kernel.ops.experimental.mm_int8int2
    import liger_kernel.transformers.functional

    return {
        "f": liger_kernel.transformers.functional,
        "ops": liger_kernel.ops,
        "x": lambda *shape: torch.randn(shape).requires_grad_(),
        "scalar": lambda: torch.randn(()).requires_grad_(),
        "ids": lambda count, most: torch.randint(0, most, (count,)),
    }


def cases(only: str):
    return expressions.cases(TABLE, inputs, "liger_kernel.ops", only)
