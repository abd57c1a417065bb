"""Teach the speaking model its sentences (python -m kernels.speaking_model.train [--minutes N] [--device cuda]).

It keeps in kept/ what decoding needs: the experts in 4 bits, the rest in fp16, the tokenizer, and about.json, which
names every source of the text with its licence. Two minutes on a GPU, or an hour on a CPU, give sentences.
`--prepare FILE` gathers the text and its tokens once, for a machine that has other packages.
"""

import argparse
import datetime
import hashlib
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from kernels import require
from kernels.next_bottleneck.shapes import SPEAKING
from kernels.next_bottleneck.weights import MIDDLE, Codes
from kernels.speaking_model import text, tokens
from kernels.speaking_model.model import SpeakingModel

KEPT = Path(__file__).parent / "kept"
LENGTH = 256  # tokens of a training row
UNSEEN = 1 / 100  # of the text's stretches, each of STRETCH tokens
STRETCH = 2048
BALANCE = 0.02
LOOK = 1 / 20  # of the time, how often unseen text is looked at
PEAK, LAST = 3e-3, 1e-4  # learning rates


def prepared() -> dict:
    """Return the text as tokens, the tokenizer's merges and what there is to say about them."""
    whole, sizes = text.gather()
    whole = whole.encode("ascii", "ignore").decode()
    tokenizer = tokens.learn(whole, SPEAKING.vocabulary)
    about = {
        "sources": {
            name: {"licence": text.SOURCES[name], "characters": size} for name, size in sizes.items() if size
        },
        "sha256_of_text": hashlib.sha256(whole.encode()).hexdigest(),
    }
    return {
        "tokens": np.array(tokenizer.encode(whole), np.uint16),
        "merges": np.array(tokenizer.merges, np.uint16),
        "about": np.array(json.dumps(about)),
    }


def split(numbers: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is trained on, and every hundredth stretch, which is not."""
    every = round(1 / UNSEEN)
    whole = torch.from_numpy(numbers.astype(np.int64))
    pieces = whole[: len(whole) // STRETCH * STRETCH].view(-1, STRETCH)
    unseen = torch.arange(len(pieces)) % every == every - 1
    return pieces[~unseen].flatten(), pieces[unseen].flatten()


def batch(numbers: torch.Tensor, rows: int, rng) -> tuple[torch.Tensor, torch.Tensor]:
    start = torch.randint(len(numbers) - LENGTH, (rows, 1), generator=rng).to(numbers.device)
    found = numbers[start + torch.arange(LENGTH + 1, device=numbers.device)]
    return found[:, :-1], found[:, 1:]


def rate(share: float) -> float:
    """Return the learning rate when this share of the time has passed: a short rise, then a cosine."""
    rise = 0.02
    if share < rise:
        return PEAK * max(share, rise / 20) / rise
    return LAST + (PEAK - LAST) * (1 + math.cos(math.pi * min(1.0, (share - rise) / (1 - rise)))) / 2


@torch.no_grad()
def unseen_loss(model: SpeakingModel, numbers: torch.Tensor) -> float:
    """Return nats a token on text that was not trained on."""
    model.eval()
    rows = numbers[: (len(numbers) - 1) // LENGTH * LENGTH].view(-1, LENGTH)
    total = 0.0
    for some in rows.split(8):
        total += F.cross_entropy(
            model(some[:, :-1]).flatten(0, 1), some[:, 1:].flatten(), reduction="sum"
        ).item()
    model.train()
    return total / (rows.numel() - len(rows))


def train(
    numbers: np.ndarray,
    *,
    minutes: float,
    rows: int,
    device="cpu",
    dropout: float = 0.0,
    seed: int = 0,
    say=print,
):
    """Return (model, steps, nats a token on unseen text): the model as it was when that was least."""
    require.positive(minutes=minutes)
    require.count(rows=rows)
    require.share(dropout=dropout)
    torch.set_float32_matmul_precision("high")  # a GPU's tensor cores, without a change on a CPU
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    model = SpeakingModel(dropout=dropout).to(device)
    seen, unseen = (part.to(device) for part in split(numbers))
    decayed = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.95), fused=device == "cuda")
    started, step, passed, looked = time.monotonic(), 0, 0.0, 0.0
    best, kept = math.inf, None
    while passed < 1:
        passed = (time.monotonic() - started) / (60 * minutes)
        for group in adam.param_groups:
            group["lr"] = rate(passed)
        x, wanted = batch(seen, rows, rng)
        loss = F.cross_entropy(model(x).flatten(0, 1), wanted.flatten())
        balance = sum(block.mlp.balance for block in model.layers)
        adam.zero_grad()
        (loss + BALANCE * balance).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        step += 1
        if passed - looked >= LOOK or passed >= 1:
            looked, now = passed, unseen_loss(model, unseen)
            if now < best:
                best, kept = now, {name: one.clone() for name, one in model.state_dict().items()}
            say(f"step {step}, {passed:.0%} of {minutes:g} minutes: {loss.item():.3f} nats, unseen {now:.3f}")
    model.load_state_dict(kept)
    return model.eval(), step, best


def quantized(weight: torch.Tensor, group: int) -> Codes:
    """Return 4-bit codes with fp16 scales. Each group takes the scale, of five, with the least squared error."""
    parts = weight.detach().float().cpu().unflatten(-1, (-1, group))
    top, found = parts.abs().amax(-1), []
    for share in (1.0, 0.95, 0.9, 0.85, 0.8):
        scale = (top * share / 7).clamp_min(1e-6).half().float()[..., None]
        codes = (parts / scale).round().clamp(-8, 7)
        found.append((((codes * scale - parts) ** 2).sum(-1), codes, scale[..., 0]))
    errors, codes, scales = (torch.stack(each) for each in zip(*found, strict=True))
    best = errors.argmin(0, keepdim=True)
    scales = scales.gather(0, best)[0].half()
    codes = codes.gather(0, best[..., None].expand(-1, *codes.shape[1:]))[0]
    codes = (codes + MIDDLE).to(torch.uint8).flatten(-2)
    return Codes(codes[..., ::2] | codes[..., 1::2] << 4, scales)


def keep(model: SpeakingModel, merges: np.ndarray, about: dict, folder: Path) -> None:
    """Write weights.npz, merges.json and about.json."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {}
    for name, weight in model.state_dict().items():
        if name.endswith(("gate_up", "down")):
            codes = quantized(weight, SPEAKING.group)
            kept[name + ".codes"], kept[name + ".scales"] = codes.packed.numpy(), codes.scales.numpy()
        else:
            kept[name] = weight.cpu().half().numpy()
    np.savez_compressed(folder / "weights.npz", **kept)
    (folder / "merges.json").write_text(json.dumps(merges.tolist()) + "\n", encoding="utf-8")
    (folder / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.speaking_model.train", description=__doc__)
    parser.add_argument("--minutes", type=float, default=None, help="by default 2 on a GPU and 60 on a CPU")
    parser.add_argument("--rows", type=int, default=None, help="of a step: 64 on a GPU and 4 on a CPU")
    parser.add_argument("--dropout", type=float, default=None, help="0.15 on a GPU and 0 on a CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="gather the text into FILE, no training")
    parser.add_argument("--tokens", type=Path, metavar="FILE", help="text that --prepare gathered")
    parser.add_argument("--out", type=Path, default=KEPT, metavar="DIR")
    options = parser.parse_args(argv)
    if options.prepare:
        np.savez_compressed(options.prepare, **prepared())
        return 0
    gpu = options.device == "cuda"
    if options.tokens:
        with np.load(options.tokens) as found:
            given = {name: found[name] for name in found.files}
    else:
        given = prepared()

    def say(line):
        print(line, flush=True)

    minutes, rows = options.minutes or (2 if gpu else 60), options.rows or (64 if gpu else 4)
    dropout = (0.15 if gpu else 0.0) if options.dropout is None else options.dropout
    found = train(
        given["tokens"], minutes=minutes, rows=rows, device=options.device, dropout=dropout, say=say
    )
    model, steps, loss = found
    about = {
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if gpu else "CPU",
        "minutes": minutes,
        "steps": steps,
        "dropout": dropout,
        "tokens_a_step": rows * LENGTH,
        "tokens_of_text": len(given["tokens"]),
        "unseen_nats_a_token": round(loss, 4),
    } | json.loads(str(given["about"]))
    keep(model, given["merges"], about, options.out)
    say(json.dumps(about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
