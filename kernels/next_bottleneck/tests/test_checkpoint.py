"""A checkpoint of Qwen3-MoE's form, written here byte by byte, becomes the weights that it holds."""

import json
from pathlib import Path

import pytest
import torch

from kernels.next_bottleneck import checkpoint
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B, Shape
from kernels.next_bottleneck.weights import drawn, quantize
from kernels.tests.figures import REFUSAL

SMALL = Shape(64, 2, 4, 2, 16, experts=3, top_k=2, intermediate=32, vocabulary=40, page=64, group=32)
CONFIG = {
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "vocab_size": 151936,
    "rope_theta": 1000000.0,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "attention_bias": False,
    "rope_scaling": None,
    "hidden_act": "silu",
}


def config_of(shape: Shape) -> dict:
    return CONFIG | {key: getattr(shape, name) for name, key in checkpoint.KEYS.items()}


def tensors_of(weights) -> dict[str, torch.Tensor]:
    """The names and shapes that Hugging Face's Qwen3MoeForCausalLM writes; experts as the codes stand for."""
    s, found = (
        weights.shape,
        {"model.embed_tokens.weight": weights.embedding, "model.norm.weight": weights.norm},
    )
    found["lm_head.weight"] = weights.head
    for i, layer in enumerate(weights.layers):
        at = f"model.layers.{i}."
        for name, part in zip("qkv", layer.qkv.split([s.q_width, s.kv_width, s.kv_width]), strict=True):
            found[f"{at}self_attn.{name}_proj.weight"] = part
        found |= {
            f"{at}self_attn.o_proj.weight": layer.out,
            f"{at}self_attn.q_norm.weight": layer.q_norm,
            f"{at}self_attn.k_norm.weight": layer.k_norm,
            f"{at}input_layernorm.weight": layer.input_norm,
            f"{at}post_attention_layernorm.weight": layer.post_norm,
            f"{at}mlp.gate.weight": layer.router,
        }
        for e, (both, down) in enumerate(zip(layer.gate_up.dense(), layer.down.dense(), strict=True)):
            gate, up = both.chunk(2)
            found[f"{at}mlp.experts.{e}.gate_proj.weight"] = gate
            found[f"{at}mlp.experts.{e}.up_proj.weight"] = up
            found[f"{at}mlp.experts.{e}.down_proj.weight"] = down
    return found


def write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """The format: eight bytes of length, a table in JSON, the bytes."""
    table, body = {"__metadata__": {"format": "pt"}}, b""
    for name, one in tensors.items():
        data = one.contiguous().view(torch.uint8).numpy().tobytes()
        table[name] = {
            "dtype": "BF16",
            "shape": list(one.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    head = json.dumps(table).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


@pytest.fixture
def folder(tmp_path):
    """In two files, as large checkpoints come."""
    tensors = list(tensors_of(drawn(SMALL, seed=3)).items())
    write(tmp_path / "model-00001-of-00002.safetensors", dict(tensors[::2]))
    write(tmp_path / "model-00002-of-00002.safetensors", dict(tensors[1::2]))
    (tmp_path / "config.json").write_text(json.dumps(config_of(SMALL)))
    return tmp_path


def test_the_published_configuration_is_the_shape():
    assert {name: CONFIG[key] for name, key in checkpoint.KEYS.items()} == {
        name: getattr(QWEN3_30B_A3B, name) for name in checkpoint.KEYS
    }


def test_a_checkpoint_is_read_as_it_was_written(folder):
    want, got = drawn(SMALL, seed=3), checkpoint.load(folder, group=32)
    for (name, a, _), (_, b, _) in zip(want.named(), got.named(), strict=True):
        if name.endswith(("gate_up", "down")):
            step = b.scales.float().max()
            assert (a.dense().float() - b.dense().float()).abs().max() <= 0.51 * step, name
        else:
            assert torch.equal(a, b), name


def test_quantizing_rounds_to_the_nearest_code():
    weight = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    codes = quantize(weight, 32)
    error = (codes.dense().float() - weight.float()).unflatten(-1, (-1, 32)).abs()
    assert (error <= 0.52 * codes.scales.float()[..., None]).all()
    assert codes.nbytes == 2 * 5 * (32 + 2 * 2)
    assert torch.equal(quantize(codes.dense(), 32).codes(), codes.codes())


def cut(folder):
    path = next(folder.glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:-8])


def told(key, value):
    def change(folder):
        found = json.loads((folder / "config.json").read_text()) | {key: value}
        (folder / "config.json").write_text(json.dumps({k: v for k, v in found.items() if v != "gone"}))

    return change


@pytest.mark.parametrize(
    "spoil, says",
    [
        (cut, "must be all of its"),
        (lambda folder: next(folder.glob("*.safetensors")).unlink(), "must be one with model"),
        (
            lambda folder: next(folder.glob("*.safetensors")).write_bytes(b"x" * 40),
            "a whole safetensors file",
        ),
        (told("norm_topk_prob", False), "norm_topk_prob must be"),
        (told("rope_scaling", {"type": "yarn"}), "rope_scaling must be"),
        (told("head_dim", "gone"), "config.json must be"),
        (told("vocab_size", 41), "embedding must be"),
        (told("num_attention_heads", 6), "qkv must be"),
    ],
)
def test_what_is_no_such_checkpoint_is_refused(folder, spoil, says):
    spoil(folder)
    with pytest.raises(ValueError, match=REFUSAL) as refused:
        checkpoint.load(folder, group=32)
    assert says in str(refused.value)


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(ValueError, match=REFUSAL):
        checkpoint.Tensors(tmp_path)
