"""Launch the Hopper forward, with descriptors, tile order and the configurations tuned on an H200."""

from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from . import arguments
from .forward_hopper import ROWS, _forward

L2_SHARE = 24 * 2**20  # bytes of K and V that programs running together may keep in the L2


# H200, 2026-11-20 to 22, three sweeps. By head dim of a tile. REGISTERS is each consumer thread's number. PIN holds a
# wait below the softmax. The bits are the same, and it pays only if a program ends with its tile (see stays).
CONFIGS = {
    64: dict(CONSUMERS=3, BLOCK_N=128, STAGES=3, TURNS=True, PIN=True, LATE=False, REGISTERS=160),
    128: dict(CONSUMERS=2, BLOCK_N=128, STAGES=2, TURNS=True, PIN=True, LATE=False, REGISTERS=240),
    256: dict(CONSUMERS=2, BLOCK_N=64, STAGES=2, TURNS=False, PIN=False, LATE=False, REGISTERS=240),
}
# where rows end at a diagonal, 128 rows waste less than 192 (1024 causal: 123 us, three consumers 157)
DIAGONAL = {64: dict(CONSUMERS=2, BLOCK_N=128, STAGES=3, TURNS=True, PIN=True, LATE=True, REGISTERS=240)}
SHORT = 1024  # keys of a row that ends soon after it began


def choose_config(block_d: int, plan) -> dict:
    masked = plan.left is not None or plan.right is not None
    config = DIAGONAL.get(block_d, CONFIGS[block_d]) if masked else CONFIGS[block_d]
    return config | {"PIN": config["PIN"] and not stays(plan)} | early_queries(block_d, plan, masked)


def early_queries(block_d: int, plan, masked: bool) -> dict:
    """Return what lets a program that goes on fetch the next tile's queries while this one's end.

    H200, 2026-11-28, bit for bit the same results: head dim 64 with 1024 keys takes 3.1% less time and causal 2.3% (V's
    early release is part of this gain). Head dim 128 causal takes 1.0% less, with grouped heads 0.5%. Head dim 64
    causal with 4096 keys takes 3.1% more, and a window 0.3% more, so both go without.
    """
    if not stays(plan) or plan.left is not None:
        return {}
    if block_d == 64 and (not masked or plan.k_len <= SHORT):
        return {"QUERIES": 2, "LATE": False}
    return {"QUERIES": 2} if block_d == 128 and masked else {}


def stays(plan) -> bool:
    """Return whether one program for each SM gets a fixed share of tiles. Packed sequences don't, because their
    lengths differ.

    H200, 2026-11-22, against pinned programs, of which causal rows had one a tile unless a round of programs held few
    lengths: causal 4096 with head groups of 12 takes 13% less time, 16384 7%, grouped heads 6%, 1024 3%, head dim 64
    5%, and without a mask 4%.
    """
    return not plan.varlen


def _descriptor(t, rows: int, block_d: int, varlen: bool):
    """Return a descriptor of tiles of `rows` tokens of one head. Packed sequences are one long batch of 1."""
    if varlen:
        t = t.transpose(0, 1).unsqueeze(0)  # (1, heads, tokens, head_dim)
    layout = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)
    # a stride of an axis of length 1 may be anything, also one that TMA refuses
    strides = [s if n > 1 else 8 for s, n in zip(t.stride()[:-1], t.shape[:-1], strict=True)] + [1]
    return TensorDescriptor(t, list(t.shape), strides, [1, 1, rows, block_d], layout)


def launch(q, k, v, out, lse, plan, config=None):
    block_d = max(64, plan.block_d)
    meta = dict(config or choose_config(block_d, plan))
    persistent = meta.pop("persistent", None)
    head_group = meta.pop("head_group", None)
    block_m = meta["CONSUMERS"] * ROWS.value
    heads = q.shape[1]
    m_blocks = -(-plan.q_len // block_m)
    batch_heads = plan.batch * heads
    if head_group is None:
        keys = max(plan.k_len, 1) if not plan.varlen else max(k.shape[0] // plan.batch, 1)
        head_group = max(1, L2_SHARE * plan.q_per_kv // (2 * keys * q.shape[-1] * q.element_size()))
    head_group = min(head_group, batch_heads)
    processors = arguments.multiprocessors(q.device)
    if persistent is None:
        persistent = stays(plan)
    tiles = m_blocks * batch_heads
    masked = (
        plan.varlen or plan.left is not None or plan.right is not None or plan.k_len % meta["BLOCK_N"] != 0
    )
    if plan.varlen:
        out_strides, lse_strides = (0, out.stride(1), out.stride(0)), (0, lse.stride(0))
    else:
        out_strides, lse_strides = out.stride()[:3], lse.stride()[:2]
    grid = min(tiles, processors) if persistent else tiles
    cu_q = plan.cu_q if plan.varlen else lse
    cu_k = plan.cu_k if plan.varlen else lse
    _forward[(grid,)](
        _descriptor(q, ROWS.value, block_d, plan.varlen),
        _descriptor(k, meta["BLOCK_N"], block_d, plan.varlen),
        _descriptor(v, meta["BLOCK_N"], block_d, plan.varlen),
        out,
        lse,
        cu_q,
        cu_k,
        heads,
        plan.q_per_kv,
        m_blocks,
        head_group,
        batch_heads,
        tiles,
        plan.q_len,
        plan.k_len,
        plan.left or 0,
        plan.right or 0,
        plan.scale * arguments.LOG2E,
        plan.softcap,
        *out_strides,
        *lse_strides,
        COLS=q.shape[-1],
        HEAD_DIM=block_d,
        HAS_LEFT=plan.left is not None,
        HAS_RIGHT=plan.right is not None,
        VARLEN=plan.varlen,
        EDGE=masked,
        SOFTCAP=plan.softcap > 0,
        num_warps=4,
        **meta,
    )
