"""List which backend may run what, as a small matrix of the kind that serving engines keep (simplified, autumn 2026).

Order within an operation is preference: a faster kernel precedes a slower one that does the same. Group 0 means one
scale a channel.
"""

from dataclasses import dataclass

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class Rule:
    """`feature` must satisfy `kind` with `values`."""

    feature: str
    kind: str  # among, at least, at most, multiple of
    values: tuple


@dataclass(frozen=True)
class Backend:
    name: str
    operation: str
    rules: tuple[Rule, ...]


def among(feature, *values):
    return Rule(feature, "among", values)


def at_least(feature, value):
    return Rule(feature, "at least", (value,))


def at_most(feature, value):
    return Rule(feature, "at most", (value,))


def multiple(feature, value):
    return Rule(feature, "multiple of", (value,))


FEATURES = {  # operation -> feature -> values that a request may carry
    "attention": {
        "gpu_sm": (75, 80, 86, 89, 90, 100),
        "head_dim": (64, 80, 96, 128, 192, 256, 512),
        "kv_dtype": ("16-bit", "fp8", "int8"),
        "page_size": (1, 8, 16, 32, 64, 128),
        "attention": ("standard", "latent"),
        "mask": ("causal", "sliding window", "custom"),
    },
    "gemm": {
        "gpu_sm": (75, 80, 86, 89, 90, 100),
        "weights": ("bf16", "fp8", "fp8 in 128 blocks", "int8 W8A8", "int8 W8A16", "int4 W4A16"),
        "group": (0, 32, 64, 128, 256),
    },
    "moe": {
        "gpu_sm": (75, 80, 86, 89, 90, 100),
        "weights": ("bf16", "fp8", "fp8 in 128 blocks", "int4 W4A16"),
        "group": (0, 32, 64, 128, 256),
    },
    "all-reduce": {
        "gpus": (2, 4, 6, 8, 16, 64),
        "nodes": (1, 2, 8),
        "nvlink": (True, False),
        "message_bytes": (16 * KIB, 128 * KIB, 256 * KIB, MIB, 16 * MIB, 256 * MIB),
    },
}

# operation -> the feature that tells one job from another: a kernel built for another value is not in the same race
JOBS = {"attention": "attention", "gemm": "weights", "moe": "weights", "all-reduce": "gpus"}

_INT = ("int4 W4A16", "int8 W8A16")


def _standard(name, *rules):
    return Backend(name, "attention", (among("attention", "standard"), *rules))


def _latent(name, *rules):
    return Backend(name, "attention", (among("attention", "latent"), among("mask", "causal"), *rules))


def _one_node(gpus, limit):
    rules = (among("nodes", 1), among("nvlink", True), among("gpus", gpus), at_most("message_bytes", limit))
    return Backend(f"one-shot over NVLink, {gpus} GPUs", "all-reduce", rules)


_WINDOWS = among("mask", "causal", "sliding window")

BACKENDS = (
    _standard(
        "TRTLLM-GEN",
        among("gpu_sm", 100),
        among("head_dim", 64, 128, 256),
        _WINDOWS,
        among("kv_dtype", "16-bit", "fp8"),
        among("page_size", 16, 32, 64),
    ),
    _standard(
        "FlashAttention 4",
        among("gpu_sm", 100),
        at_most("head_dim", 256),
        _WINDOWS,
        among("kv_dtype", "16-bit"),
        multiple("page_size", 16),
    ),
    _standard(
        "FlashAttention 3",
        among("gpu_sm", 90),
        at_most("head_dim", 256),
        _WINDOWS,
        among("kv_dtype", "16-bit", "fp8"),
        multiple("page_size", 16),
    ),
    _standard(
        "FlashAttention 2",
        at_least("gpu_sm", 80),
        at_most("head_dim", 256),
        _WINDOWS,
        among("kv_dtype", "16-bit"),
        multiple("page_size", 16),
    ),
    _standard(
        "FlashInfer",
        at_most("gpu_sm", 90),
        among("head_dim", 64, 128, 256),
        _WINDOWS,
        among("kv_dtype", "16-bit", "fp8"),
        among("page_size", 16, 32, 64),
    ),
    _standard("Triton attention", at_least("gpu_sm", 80), _WINDOWS, multiple("page_size", 16)),
    _standard("FlexAttention", at_least("gpu_sm", 80), among("kv_dtype", "16-bit")),
    _latent("CUTLASS MLA", among("gpu_sm", 100), among("kv_dtype", "16-bit", "fp8"), among("page_size", 128)),
    _latent(
        "FlashAttention MLA", among("gpu_sm", 90), among("kv_dtype", "16-bit"), multiple("page_size", 16)
    ),
    _latent("FlashMLA", among("gpu_sm", 90, 100), among("kv_dtype", "16-bit", "fp8"), among("page_size", 64)),
    _latent(
        "Triton MLA", at_least("gpu_sm", 80), among("kv_dtype", "16-bit", "fp8"), multiple("page_size", 16)
    ),
    Backend("Machete", "gemm", (among("weights", *_INT), among("gpu_sm", 90), among("group", 0, 64, 128))),
    Backend(
        "Marlin", "gemm", (among("weights", *_INT), at_least("gpu_sm", 80), among("group", 0, 32, 64, 128))
    ),
    Backend("DeepGEMM", "gemm", (among("weights", "fp8 in 128 blocks"), among("gpu_sm", 90, 100))),
    Backend("CUTLASS fp8", "gemm", (among("weights", "fp8"), at_least("gpu_sm", 89), among("group", 0))),
    Backend("CUTLASS int8", "gemm", (among("weights", "int8 W8A8"), among("group", 0))),
    Backend("cuBLAS", "gemm", (among("weights", "bf16"), at_least("gpu_sm", 80))),
    Backend("Triton GEMM", "gemm", (at_least("gpu_sm", 80),)),
    Backend("dequantize, then cuBLAS", "gemm", (among("weights", *_INT),)),
    Backend("DeepGEMM, grouped", "moe", (among("weights", "fp8 in 128 blocks"), among("gpu_sm", 90, 100))),
    Backend(
        "CUTLASS, grouped",
        "moe",
        (among("weights", "bf16", "fp8"), at_least("gpu_sm", 90), among("group", 0)),
    ),
    Backend(
        "Marlin, grouped",
        "moe",
        (among("weights", "int4 W4A16"), at_least("gpu_sm", 80), among("group", 0, 32, 64, 128)),
    ),
    Backend("Triton fused MoE", "moe", (at_least("gpu_sm", 80),)),
    _one_node(2, 64 * MIB),
    _one_node(4, 32 * MIB),
    _one_node(6, 512 * KIB),
    _one_node(8, 256 * KIB),
    Backend("NCCL", "all-reduce", ()),
)
