"""Teach the tiny model the course's own lessons (python -m kernels.tiny_model.train [--steps N] [--device cpu]).

It trains three models from one start, which differ in how their routers are balanced, and keeps in kept/ the weights
of one and of each what its routers chose on text that it has not seen.
"""

import argparse
import datetime
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from kernels import require, texts
from kernels.tiny_model.model import TinyModel

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "kept"
WAYS = ("none", "auxiliary loss", "bias")
STRENGTH, BIAS_RATE = 0.02, 0.001
UNSEEN = 1 / 16  # the end of each lesson
TRACED = 32  # rows of unseen text whose routing is kept


def lessons() -> list[bytes]:
    """Return each lesson as its bytes, its pages joined. The stored model was trained once, on the texts of that day."""
    found = texts.lessons(ROOT / "course").values()
    return [b"".join(page.read_bytes() for page in pages) for pages in found]


def split(pages: list[bytes]) -> tuple[torch.Tensor, torch.Tensor]:
    """Split lessons into text for training and text that stays unseen, bytes as numbers."""
    cuts = [len(page) - int(len(page) * UNSEEN) for page in pages]
    parts = (
        b"".join(p[:c] for p, c in zip(pages, cuts, strict=True)),
        b"".join(p[c:] for p, c in zip(pages, cuts, strict=True)),
    )
    return tuple(torch.from_numpy(np.frombuffer(part, np.uint8).astype(np.int64)) for part in parts)


def batch(text: torch.Tensor, rows: int, length: int, rng) -> tuple[torch.Tensor, torch.Tensor]:
    start = torch.randint(len(text) - length, (rows, 1), generator=rng)
    found = text[start + torch.arange(length + 1)]
    return found[:, :-1], found[:, 1:]


def auxiliary_of(logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return experts x sum of (share of pairs x mean probability)."""
    experts = logits.shape[1]
    share = torch.bincount(chosen.reshape(-1), minlength=experts) / chosen.numel()
    return experts * (share * logits.softmax(-1).mean(0)).sum()


def train(way: str, *, steps: int, device="cpu", rows: int = 16, seed: int = 0, say=print) -> TinyModel:
    require.one_of(WAYS, way=way)
    require.count(steps=steps, rows=rows)
    torch.manual_seed(seed)
    model, rng = TinyModel().to(device), torch.Generator().manual_seed(seed)
    text, _ = split(lessons())
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps, eta_min=3e-4)
    started = time.monotonic()
    for step in range(steps):
        x, wanted = (t.to(device) for t in batch(text, rows, model.config.length, rng))
        loss = F.cross_entropy(model(x).flatten(0, 1), wanted.flatten())
        routed = [block.moe.routed for block in model.blocks]
        balance = sum(auxiliary_of(*one) for one in routed) if way == "auxiliary loss" else 0.0
        adam.zero_grad()
        (loss + STRENGTH * balance).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        slower.step()
        if way == "bias":
            for block in model.blocks:
                loads = torch.bincount(block.moe.routed[1].reshape(-1), minlength=model.config.experts)
                block.moe.bias += BIAS_RATE * torch.sign(loads.float().mean() - loads)
        if step % 100 == 0 or step == steps - 1:
            say(
                f"{way:<15} step {step:>5} of {steps}: {loss.item():.3f} nats a byte, {time.monotonic() - started:.0f} s"
            )
    return model


@torch.no_grad()
def traced(model: TinyModel) -> tuple[float, np.ndarray]:
    """Return nats per byte on unseen text, and the routers' choices (blocks, tokens, top_k), token after token."""
    device = model.embedding.weight.device
    _, text = split(lessons())
    length = model.config.length
    rows = text[: TRACED * length + 1]
    x, wanted = rows[:-1].view(TRACED, length).to(device), rows[1:].view(TRACED, length).to(device)
    loss = F.cross_entropy(model(x).flatten(0, 1), wanted.flatten()).item()
    return loss, np.stack([block.moe.routed[1].cpu().numpy().astype(np.uint8) for block in model.blocks])


def keep(models: dict[str, TinyModel], folder: Path, steps: int) -> dict:
    """weights.npz in fp16 of the one balanced by its auxiliary loss, traces.npz and about.json of all."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {way: traced(model) for way, model in models.items()}
    kept = models["auxiliary loss"].state_dict()
    np.savez_compressed(folder / "weights.npz", **{k: v.cpu().half().numpy() for k, v in kept.items()})
    np.savez_compressed(folder / "traces.npz", **{way: trace for way, (_, trace) in found.items()})
    about = {
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "steps": steps,
        "bytes_of_text": sum(map(len, lessons())),
        "unseen_nats_a_byte": {way: round(loss, 4) for way, (loss, _) in found.items()},
    }
    (folder / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return about


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.tiny_model.train", description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=KEPT, metavar="DIR")
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error(f"--steps must be at least 1, got {options.steps}; some hundreds teach it words")

    def say(line):
        print(line, flush=True)

    models = {way: train(way, steps=options.steps, device=options.device, say=say) for way in WAYS}
    say(json.dumps(keep(models, options.out, options.steps)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
