"""The same promises over NCCL, a rank for each GPU that is here, two at the most."""

import re

import pytest
import torch

from kernels.expert_load_balance import cases, measure_rank
from kernels.expert_load_balance.ranks import Ranks, RanksEnded
from kernels.expert_load_balance.tests import on_ranks

pytestmark = pytest.mark.gpu
GPUS = min(2, torch.cuda.device_count())


@pytest.fixture(scope="module")
def ranks():
    with Ranks(GPUS, "cuda") as started:
        yield started


def test_every_form_has_the_bits_of_one_device(ranks):
    assert ranks.run(measure_rank.same_bits) == [[]] * GPUS


@pytest.mark.parametrize("shape", [cases.SMALL, cases.QWEN], ids=lambda shape: shape.name)
@pytest.mark.parametrize("parts", [1, 3])
def test_bf16_is_near_one_device(ranks, shape, parts):
    setting = cases.Setting(shape, GPUS, 100, "Zipf", "replicated", parts)
    for one in ranks.run(measure_rank.timed, setting, 2):
        assert one["error"] < 8e-3 and one["experts"] == "grouped"


@pytest.mark.parametrize("what", ["dies", "hangs"])
def test_trouble_of_the_last_ends_all(what):
    with Ranks(GPUS, "cuda", patience_s=5) as ranks:
        processes = [pid for _, _, pid in ranks.run(on_ranks.who)]
        with pytest.raises(
            RanksEnded, match=re.escape(f"rank {GPUS - 1} {'was killed' if what == 'dies' else what}")
        ):
            ranks.run(on_ranks.trouble, what, GPUS - 1)
    assert not any(on_ranks.is_there(pid) for pid in processes)


def test_more_ranks_than_gpus_are_refused():
    many = torch.cuda.device_count() + 1
    with pytest.raises(
        RanksEnded, match=f"ValueError: ranks must be at most the {many - 1} GPUs here, got {many};"
    ):
        with Ranks(many, "cuda"):
            pass
