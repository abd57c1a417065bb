"""On a GPU: the third call of a form, which is replayed, has the bits of the first, on other tensors and by other streams."""

import pytest
import torch

from kernels import replays, timing
from kernels.flash_attention import backward, decode, forward
from kernels.gemm_tiling import block_scaled_gemm, gemm
from kernels.moe_routing import layer as experts_layer
from kernels.moe_routing.arguments import Experts
from kernels.moe_routing.rules import DEEPSEEK_V3, QWEN3, Rule
from kernels.quantization_layouts import bench, cases, dispatch, formats
from kernels.quantization_layouts.candidates import layer
from kernels.roofline import layernorm_gelu

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def bf16(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16)


def gemms():
    for m, n, k in (
        (1024, 1024, 1024),
        (128, 4096, 512),
        (300, 264, 136),
        (1, 512, 256),
        (40, 512, 256),
        (77, 65, 33),
    ):
        for columns in (True, False):
            b = (lambda n=n, k=k: bf16(n, k).t()) if columns else lambda n=n, k=k: bf16(k, n)
            yield (
                f"gemm {m} {n} {k} {columns}",
                gemm.REPLAYS,
                gemm.gemm,
                lambda m=m, k=k, b=b: (bf16(m, k), b()),
            )


def attentions():
    def of_packed():
        packed = bf16(2, 200, 3, 4, 128)
        return tuple(packed[:, :, i].transpose(1, 2) for i in range(3))

    causal = lambda *given: forward.attention(*given, causal=True)  # noqa: E731
    yield "attention, packed", forward.REPLAYS, causal, of_packed
    grouped = lambda: (bf16(1, 8, 300, 64), bf16(1, 2, 500, 64), bf16(1, 2, 500, 64))  # noqa: E731
    yield "attention, window", forward.REPLAYS, lambda *g: forward.attention(*g, window=(40, 0)), grouped
    for d in (64, 40):
        draw = lambda d=d: (*(bf16(1, 4, 130, d) for _ in range(5)), torch.rand(1, 4, 130, device=DEVICE))  # noqa: E731
        run = lambda *g: backward.attention_backward(*g, causal=True, deterministic=True)  # noqa: E731
        yield f"backward {d}", backward.REPLAYS, run, draw
    draw = lambda: (bf16(4, 8, 128), bf16(4, 2, 3000, 128), bf16(4, 2, 3000, 128))  # noqa: E731
    yield "decode", decode.REPLAYS, decode.decode, draw


def packed_layers():
    for m, n, k, form in (
        (1, 4096, 4096, {}),
        (16, 4096, 4096, {}),
        (33, 4096, 4096, {"group": 32, "zero_points": True}),
        (64, 512, 1024, {}),
        (3, 200, 384, {"kind": "book", "bits": 3, "group": 64}),
        (8, 512, 512, {"kind": "book", "bits": 4, "group": 32, "experts": 4}),
    ):
        case = cases.Case(m, n, k, dtype="bf16", **form)
        one = layer(bench.draw(case, 0, DEVICE)["packed"], keep_dense=m == 64)
        draw = lambda case=case: (bf16(case.m * case.experts, case.k),)  # noqa: E731
        yield f"linear {case.name}", one.packed.replays, lambda x, one=one: dispatch.linear(x, one), draw


def layers_of_experts():
    for tokens in (1, 16, 300, 2000):
        for rule, shared, hidden in ((QWEN3, 0, 256), (DEEPSEEK_V3, 1, 2048), (Rule(2), 0, 512)):
            experts = Experts(
                bf16(64 + shared, 256, hidden) / hidden**0.5,
                bf16(64 + shared, hidden, 128) / 12,
                shared=shared,
            )
            router, name = bf16(64, hidden) / hidden**0.5, f"experts {tokens} {rule.scores} {hidden}"
            call = lambda x, r=router, e=experts, rule=rule: experts_layer.layer(x, r, e, rule)  # noqa: E731
            yield name, experts.replays, call, lambda t=tokens, h=hidden: (bf16(t, h),)


def others():
    yield (
        "layernorm",
        layernorm_gelu.REPLAYS,
        layernorm_gelu.layernorm_gelu,
        lambda: (bf16(9, 5120), bf16(5120), bf16(5120)),
    )
    fp8 = lambda *shape: torch.randn(*shape, device=DEVICE).to(torch.float8_e4m3fn)  # noqa: E731
    scales = lambda *shape: torch.rand(*shape, device=DEVICE).t()  # noqa: E731
    draw = lambda: (fp8(256, 512), fp8(384, 512).t(), scales(4, 256), scales(3, 4))  # noqa: E731
    yield "block-scaled", block_scaled_gemm.REPLAYS, block_scaled_gemm.block_scaled_gemm, draw
    weight = formats.Narrow("fp8", fp8(384, 512), torch.rand(384, device=DEVICE))
    for rows in (3, 200):
        draw = lambda rows=rows: (fp8(rows, 512), torch.rand(rows, device=DEVICE))  # noqa: E731
        yield f"fp8, {rows} rows", formats.REPLAYS, lambda x, scales: formats.product(x, scales, weight), draw


def bits(found) -> list[torch.Tensor]:
    return [one.clone() for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize(
    "family", (gemms, attentions, packed_layers, layers_of_experts, others), ids=lambda f: f.__name__
)
def test_a_replayed_call_has_the_bits_of_an_ordinary_one(family, monkeypatch):
    kept = 0
    for name, known, call, draw in family():
        known.clear()
        one, two = draw(), draw()
        monkeypatch.setattr(replays, "DEVICES", ())
        want = [bits(call(*given)) for given in (one, two)]
        monkeypatch.setattr(replays, "DEVICES", ("cuda",))
        for given, expected in zip((one, two, one, two), (*want, *want), strict=True):
            assert all(map(torch.equal, bits(call(*given)), expected)), name
        kept += any(known.values())
        with torch.cuda.stream(side := torch.cuda.Stream()):
            again = bits(call(*one))
        side.synchronize()
        assert all(map(torch.equal, again, want[0])), f"{name} on another stream"
        graph_out = []
        graph = timing.capture([lambda call=call, two=two, out=graph_out: out.append(call(*two))])
        graph.replay()
        assert all(map(torch.equal, bits(graph_out[-1]), want[1])), f"{name} in a graph"
    assert kept
