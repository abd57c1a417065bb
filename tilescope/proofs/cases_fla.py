"""List cases of fla, for every public operator, forward and backward, on small inputs."""

import torch
import torch.nn.functional as F

from . import expressions

B, T, H, D = 1, 128, 2, 32
TABLE = """
abc.chunk_abc(q, k, v, s)
attn.parallel_attn(q, k, v)
attn.parallel_attn(q, k, v, g=gs, window_size=32)
attnres.fused_attnres(x(64), [x(B, T, 64), x(B, T, 64)], x(64))
based.fused_chunk_based(small(q), small(k), v)
based.parallel_based(small(q), small(k), v)
comba.chunk_comba(q, k, unit(p), v, gs, beta, use_qk_l2norm_in_kernel=True)
comba.fused_recurrent_comba(q.detach(), k.detach(), unit(p).detach(), v.detach(), gs.detach(), beta.detach(), use_qk_l2norm_in_kernel=True)
delta_rule.chunk_delta_rule(q, unit(k), v, beta)
delta_rule.chunk_delta_rule(q, k, v, beta, use_qk_l2norm_in_kernel=True, initial_state=state, output_final_state=True)
delta_rule.fused_recurrent_delta_rule(q, unit(k), v, beta)
deltaformer.deltaformer_attn(q, unit(k), v, beta)
forgetting_attn.parallel_forgetting_attn(q, k, v, gs)
gated_delta_product.chunk_gated_delta_product(q, unit(x(B, 2 * T, H, D)), x(B, 2 * T, H, D), gs, sigmoid(B, 2 * T, H), num_householder=2)
gated_delta_rule.chunk_gated_delta_rule(q, unit(k), v, gs, beta)
gated_delta_rule.chunk_gated_delta_rule(q, k, v, gs, beta, use_qk_l2norm_in_kernel=True, initial_state=state, output_final_state=True)
gated_delta_rule.fused_recurrent_gated_delta_rule(q.detach(), unit(k).detach(), v.detach(), gs.detach(), beta=beta.detach())
gated_oja_rule.chunk_gated_oja_rule(q, unit(k), unit(v), g, beta)
gated_oja_rule.fused_recurrent_gated_oja_rule(q.detach(), unit(k).detach(), v.detach(), g.detach(), beta.detach())
gdn2.chunk_gdn2(q, unit(k), v, g, sigmoid(B, T, H, D), sigmoid(B, T, H, D))
gdn2.fused_recurrent_gdn2(q.detach(), unit(k).detach(), v.detach(), g.detach(), sigmoid(B, T, H, D).detach(), sigmoid(B, T, H, D).detach())
generalized_delta_rule.chunk_dplr_delta_rule(q, k, v, unit(p), -unit(p), g)
generalized_delta_rule.fused_recurrent_dplr_delta_rule(q.detach(), k.detach(), v.detach(), unit(p).detach(), unit(p).detach(), g.detach())
generalized_delta_rule.chunk_iplr_delta_rule(q.detach(), k.detach(), v.detach(), unit(p).detach(), -unit(p).detach())
generalized_delta_rule.fused_recurrent_iplr_delta_rule(q, k, v, unit(p), -unit(p))
gla.chunk_gla(q, k, v, g)
gla.chunk_gla(q, k, v, g, initial_state=state, output_final_state=True)
gla.fused_recurrent_gla(q, k, v, gk=g)
gla.fused_recurrent_gla(q, k, v, gk=g, gv=g, initial_state=state, output_final_state=True, reverse=True)
gsa.chunk_gsa(q, k, v, s, gslots)
gsa.fused_recurrent_gsa(q, k, v, s, gslots)
hgrn.chunk_hgrn(x(B, T, 64), logs(B, T, 64))
hgrn.fused_recurrent_hgrn(x(B, T, 64), logs(B, T, 64))
kda.chunk_kda(q, unit(k), v, g, beta)
kda.chunk_kda(q, k, v, g, beta, use_qk_l2norm_in_kernel=True, initial_state=state, output_final_state=True)
kda.chunk_kda(q, k, v, x(B, T, H, D), beta, A_log=full(H), dt_bias=full(H * D), use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True)
kda.fused_recurrent_kda(q.detach(), unit(k).detach(), v.detach(), g.detach(), beta.detach())
lightnet.chunk_lightnet(q, k, v)
lightning_attn.chunk_lightning_attn(q, k, v, 1, 4)
lightning_attn.fused_recurrent_lightning_attn(q, k, v, 1, 4)
linear_attn.chunk_linear_attn(q, k, v, normalize=False)
linear_attn.fused_chunk_linear_attn(q, k, v, normalize=False)
linear_attn.fused_recurrent_linear_attn(q, k, v)
log_linear_attn.chunk_log_linear_attn(x(B, T, 1, 64).detach(), x(B, T, 1, 64).detach(), x(B, T, H, 64).detach(), gs.detach(), sigmoid(B, T, H, 10).detach())
mesa_net.chunk_mesa_net(q, unit(k), v, gs, beta, sigmoid(H, D) + 1, max_CG_iteration=3)
mesa_net.mesa_net_decoding_one_step(full(B, H, D), full(B, H, D), full(B, H, D), logs(B, H, dtype=torch.float32), sigmoid(H, D).float() + 1, sigmoid(B, H).float(), full(B, H, D, D), full(B, H, D, D), 3)
moba.parallel_moba(*(y[0] for y in (q, k, v)), torch.tensor([0, T], dtype=torch.int32), T, 32, 2)
nsa.parallel_nsa(x(B, T, 16, D), x(B, T, 1, D), x(B, T, 1, D), g_cmp=sigmoid(B, T, 16), g_slc=sigmoid(B, T, 16), g_swa=sigmoid(B, T, 16), block_counts=2, block_size=32, window_size=0)
momentum_delta_rule.chunk_momentum_delta_rule(q, k, v, gs, gs, beta=beta, eta=beta)
momentum_delta_rule.fused_recurrent_momentum_delta_rule(q, k, v, gs, gs, beta=beta, eta=beta)
parallax.parallel_parallax(q, p, k, v)
path_attn.parallel_path_attn(x(B, T, H, 64), x(B, T, H, 64), x(B, T, H, 64), unit(full(B, T, H, 64)), beta.float(), gs)
precond_gated_delta_rule.chunk_precond_gated_delta_rule(q, k, v, gs, gs, beta, beta)
precond_gated_delta_rule.fused_recurrent_precond_gated_delta_rule(q.detach(), k.detach(), v.detach(), gs.detach(), beta=beta.detach(), g_atk=gs.detach(), beta_atk=beta.detach())
precond_kda.chunk_precond_kda(q, unit(k), v, g, gs, beta, beta)
rebased.parallel_rebased(small(q), small(k), v)
retention.chunk_retention(q, k, v)
retention.fused_chunk_retention(q, k, v)
retention.parallel_retention(q, k, v)
retention.fused_recurrent_retention(q, k, v)
rwkv4.fused_recurrent_rwkv4(full(64), full(64), full(B, T, 64), full(B, T, 64), full(B, 3, 1, 64))
rwkv6.chunk_rwkv6(q, k, v, g, x(H, D))
rwkv6.fused_recurrent_rwkv6(q, k, v, g, x(H, D))
rwkv7.chunk_rwkv7(q, g, k, v, unit(p), -unit(p))
rwkv7.fused_recurrent_rwkv7(q.detach(), g.detach(), k.detach(), v.detach(), unit(p).detach(), unit(p).detach())
rwkv7.fused_mul_recurrent_rwkv7(q.detach(), g.detach(), k.detach(), v.detach(), unit(p).detach(), beta4.detach())
rwkv7.fused_k_update.fused_k_rwkv7(x(B, T, 64), x(B, T, 64), x(64))
rwkv7.fused_addcmul.fused_addcmul_rwkv7(x(B, T, 64), x(B, T, 64), x(1, 1, 64), x(1, 1, 64), x(1, 1, 64), x(1, 1, 64), x(1, 1, 64), x(1, 1, 64))
rwkv7.gate_output_correction.gate_output_correction(x(B, T, 64), x(B, T, H, 32), x(B, T, H, 32), x(H, 32), x(B, T, H, 32), x(B, T, 64))
simple_gla.chunk_simple_gla(q, k, v, gs)
simple_gla.chunk_simple_gla(q, k, v, g_gamma=logs(H, dtype=torch.float32).detach())
simple_gla.fused_chunk_simple_gla(q, k, v, gs)
simple_gla.parallel_simple_gla(q, k, v, gs)
simple_gla.fused_recurrent_simple_gla(q, k, v, gs)
stickbreaking_attn.parallel_stickbreaking_attn(q, k, v)
ttt.chunk_ttt_linear(x(B, T, H, 64), x(B, T, H, 64), x(B, T, H, 64), x(H, 64), x(H, 64), sigmoid(B, T, H, 1) / 16, chunk_size=16)
ttt.fused_chunk_ttt_linear(x(B, T, H, 64), x(B, T, H, 64), x(B, T, H, 64), x(H, 64), x(H, 64), sigmoid(B, T, H, 1) / 16, chunk_size=16)
utils.chunk_local_cumsum(gs.detach(), 64)
utils.chunk_local_cumsum(g.detach(), 64, reverse=True)
utils.chunk_global_cumsum(gs.detach())
utils.chunk_global_cumsum(g.detach(), reverse=True)
utils.mean_pooling(q, 32)
utils.logsumexp_fwd(full(T, 64).detach())
utils.solve_tril(torch.tril(full(B, T, H, 16).detach(), -1))
utils.solve_tril(full(B, T, H, 32).detach())
utils.solve_tril(full(B, T, H, 64).detach() / 8)
utils.matmul(x(64, 96).detach(), x(96, 64).detach())
utils.matmul(x(64, 96).detach(), x(96, 64).detach(), activation="leaky_relu")
utils.addmm(x(64).detach(), x(64, 96).detach(), x(96, 64).detach(), alpha=torch.tensor([2.0]), beta=torch.tensor([3.0]))
utils.softmax_fwd(full(T, 64).detach())
utils.softmax_bwd(full(T, 64).softmax(-1).detach(), full(T, 64).detach())
utils.prepare_position_ids(torch.tensor([0, 40, 128], dtype=torch.int32))
utils.pack_sequence(x(2, 64, 32), torch.tensor([0, 40, 100], dtype=torch.int32))
utils.unpack_sequence(x(100, 32), torch.tensor([0, 40, 100], dtype=torch.int32))
wall_attn.parallel_wall_attn(q, k, v, g)
gla.chunk_gla(q, k, v, g, cu_seqlens=torch.tensor([0, 50, 128]))
modules.activations.swish(x(T, 64))
modules.activations.sigmoid(x(T, 64))
modules.activations.logsigmoid(x(T, 64))
modules.activations.swiglu(x(T, 64), x(T, 64))
modules.activations.swiglu_linear(x(T, 64), x(T, 64), x(32, 64), None)
modules.activations.powglu(x(T, 64), x(T, 64), 2)
modules.layernorm.layer_norm(x(T, 64), x(64), x(64))
modules.layernorm.rms_norm(x(T, 64), x(64), None, residual=x(T, 64), prenorm=True)
modules.layernorm.group_norm(x(T, 64), x(64), x(64), num_groups=4)
modules.layernorm.layer_norm_linear(x(T, 64), x(64), x(64), x(32, 64), None)
modules.l2norm.l2norm(x(T, 64))
modules.l2norm.l2norm(x(T, 640))
modules.fused_norm_gate.rms_norm_gated(x(T, 64), x(T, 64), x(64), None)
modules.fused_norm_gate.layer_norm_gated(x(T, 640), x(T, 640), x(640), x(640), activation="sigmoid")
modules.fused_norm_gate.rms_norm_swish_gate_linear(x(T, 64), x(T, 64), x(64), None, x(32, 64), None)
modules.rotary.rotary_embedding(x(B, T, H, D), x(T, 16).detach(), x(T, 16).detach())
modules.convolution.causal_conv1d(x(B, T, 64), x(64, 4), x(64), activation="silu")
modules.convolution.causal_conv1d(x(B, T, 64), x(64, 4), None, residual=x(B, T, 64), cu_seqlens=torch.tensor([0, 50, 128]))
modules.token_shift.token_shift(x(B, T, 64))
modules.token_shift.token_shift(x(B, T, 64), torch.tensor([0, 50, 128]))
modules.fused_cross_entropy.cross_entropy_loss(x(T, 100), torch.arange(T) % 100)
modules.fused_cross_entropy.cross_entropy_loss(x(T, 100), torch.arange(T) % 100, label_smoothing=0.1, lse_square_scale=0.1)
modules.fused_linear_cross_entropy.fused_linear_cross_entropy_loss(x(T, 64), torch.arange(T) % 100, x(100, 64), x(100))
modules.fused_kl_div.fused_kl_div_loss(x(T, 64), x(T, 64).detach(), x(100, 64), x(100, 64).detach())
modules.fused_bitlinear.layer_norm_linear_quant(x(T, 64), x(64), x(64), x(32, 64), None)
modules.grpo.fused_grpo_loss(x(2, 17, 100), x(2, 16), torch.arange(32).reshape(2, 16) % 100, x(2), 0.1, torch.ones(2, 16, dtype=torch.int32))
"""


def inputs() -> dict:
    def x(*shape, dtype=torch.float16):
        return (torch.randn(shape) * 0.5).to(dtype).requires_grad_()

    def logs(*shape, dtype=torch.float16):
        return (F.logsigmoid(torch.randn(shape)) / 4).to(dtype).requires_grad_()

    def sigmoid(*shape):
        return torch.rand(shape).to(torch.float16).requires_grad_()

    def unit(y):
        return F.normalize(y.float(), dim=-1).to(y.dtype)

    whole = {"B": B, "T": T, "H": H, "D": D, "x": x, "logs": logs, "sigmoid": sigmoid, "unit": unit}
    tile, row = (B, T, H, D), (B, T, H)
    return whole | {
        **{name: x(*tile) for name in "qkvp"},
        "full": lambda *shape: x(*shape, dtype=torch.float32),
        "small": lambda y: y[..., :16].contiguous(),
        "s": x(B, T, H, 16),
        "g": logs(*tile, dtype=torch.float32),
        "gs": logs(*row, dtype=torch.float32),
        "gslots": logs(B, T, H, 16, dtype=torch.float32),
        "beta": sigmoid(*row),
        "beta4": sigmoid(*tile),
        "state": x(B, H, D, D, dtype=torch.float32),
    }


def mesa_against_its_definition() -> str:
    """Compare one operator with the library's slow form, where Triton's interpreter makes infinities."""
    from fla.ops.mesa_net import chunk_mesa_net, naive_mesa_net_exact

    known = inputs()
    named = {name: known[name].detach() for name in ("q", "k", "v", "gs", "beta")}
    q, k, v, g, beta = named.values()
    k, lamb = known["unit"](k), known["sigmoid"](H, D).detach() + 1
    fast, *_ = chunk_mesa_net(q, k, v, g, beta, lamb, max_CG_iteration=30)
    slow, *_ = naive_mesa_net_exact(*(x.float() for x in (q, k, v, g, lamb, beta)))
    return "right" if torch.allclose(fast.float(), slow, atol=2e-3, rtol=2e-2) else "wrong"


def cases(only: str):
    found = list(expressions.cases(TABLE, inputs, "fla.ops", only))
    more = {"mesa_net.chunk_mesa_net against its definition": mesa_against_its_definition}
    return found + [(name, run) for name, run in more.items() if only in name]
