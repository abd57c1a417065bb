"""What must hold whatever the input: the chain, the dispatcher, the detective, overlap and guessing."""

import itertools
import random
from dataclasses import replace

import pytest

from kernels.machines import MACHINES, machine
from kernels.next_bottleneck import cost
from kernels.tests.properties import given, st

H100 = {"peak_flop_s": 989e12, "bandwidth_byte_s": 3.35e12}


def chain(**more):
    given_ = {"batch": 32, "context": 4096, "devices": 8, **more}
    return cost.decode_chain(cost.LLAMA_70B, machine("H100"), **given_)


def test_the_chain_of_llama_70b_at_batch_32():
    """141 GB less the embedding over 8 x 3.35 TB/s, 43 GB of cache, 2,412 launches of 5 us."""
    parts_s = chain()
    assert parts_s["linear weights"] == pytest.approx(139e9 / 8 / 3.35e12, rel=0.001)
    assert parts_s["attention"] == pytest.approx(32 * 4096 * 327_680 / 8 / 3.35e12)
    assert parts_s["launch gaps"] == pytest.approx(2412 * 5e-6)
    assert cost.next_bottleneck(parts_s).part == "launch gaps"
    after = cost.next_bottleneck(chain(graphs=True))
    assert after.part == "linear weights" and "quantize" in after.remedy
    assert after.ceiling == pytest.approx(1 / (1 - after.share))


def test_the_chain_counts_every_part_by_hand():
    """Three layers of tiny sizes on a machine of round numbers: 1e12 FLOP/s, 1e9 byte/s, link 1e9, 1 us a launch."""
    tiny = cost.Transformer(
        "tiny", 3, hidden=8, intermediate=16, heads=4, kv_heads=2, head_dim=2, vocabulary=32
    )
    assert tiny.linear_parameters == 3 * (8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 16) + 32 * 8
    assert tiny.parameters == tiny.linear_parameters + 32 * 8
    slow = replace(machine("H100"), flops={"fp16": 1e12}, bandwidth=1e9, link_bandwidth=1e9, launch_s=1e-6)
    given_ = {"batch": 4, "context": 10, "devices": 2, "kernels_per_layer": 7, "elementwise_passes": 6}
    parts_s = cost.decode_chain(tiny, slow, sampling_kernels=3, **given_)
    assert parts_s["linear weights"] == pytest.approx(tiny.linear_parameters / 2 * 2 / 1e9)
    assert parts_s["attention"] == pytest.approx(3 * 2 * 2 * 2 * 10 * 4 / 2 * 2 / 1e9)
    assert parts_s["element-wise"] == pytest.approx(3 * 6 * 4 * 8 * 2 / 1e9)
    assert parts_s["all-reduce"] == pytest.approx(3 * 2 * (1e-6 + 4 * 8 * 2 / 1e9))
    assert parts_s["sampling"] == pytest.approx(2 * 3 * 4 * 32 * 4 / 1e9)
    assert parts_s["launch gaps"] == pytest.approx(24e-6)
    fast = cost.decode_chain(tiny, replace(slow, flops={"fp16": 1e6}), sampling_kernels=3, **given_)
    assert fast["linear weights"] == pytest.approx(2 * tiny.linear_parameters / 2 * 4 / 1e6)
    assert fast["attention"] == pytest.approx(3 * 4 * 4 * 2 * 10 * 4 / 2 / 1e6)


def test_a_part_that_is_everything_has_no_ceiling():
    assert cost.next_bottleneck({"sampling": 2.0}).ceiling == float("inf")
    assert cost.next_bottleneck({"sampling": 3.0, "odd": 1.0}).ceiling == pytest.approx(4)
    assert cost.next_bottleneck({"odd": 1.0}).remedy == "profile inside it"


def test_a_compute_bound_kernel_is_judged_by_its_arithmetic():
    good, poor = (cost.diagnose_kernel(flop_s, 0.5e12, **H100) for flop_s in (780e12, 300e12))
    assert (good.bound, good.lever, poor.lever) == ("compute", "fewer FLOPs", "implementation")
    assert good.roof_share == good.compute_share == pytest.approx(0.789, abs=0.001)


def test_each_lever_moves_its_own_part_only():
    before = chain()
    moved = {
        "linear weights": chain(weight_bits=4.25),
        "attention": chain(kv_bits=8),
        "launch gaps": chain(graphs=True),
        "element-wise": chain(elementwise_passes=4),
    }
    for part, after in moved.items():
        assert after[part] < before[part]
        assert {name for name in before if after[name] != before[name]} == {part}
    assert chain(devices=1)["all-reduce"] == 0
    assert chain(context=8192)["attention"] == pytest.approx(2 * before["attention"])


@pytest.mark.parametrize("name", MACHINES)
def test_the_chain_runs_on_every_machine(name):
    parts_s = cost.decode_chain(cost.LLAMA_8B, machine(name), batch=4, context=1024, devices=2)
    assert all(time_s > 0 for time_s in parts_s.values())


def test_curing_in_turn_always_takes_the_largest_left():
    steps = cost.cure_in_turn(chain(), {"linear weights": 0.5, "launch gaps": 0.99, "element-wise": 0.7})
    assert [step.part for step in steps] == ["launch gaps", "linear weights", "element-wise"]
    assert all(step.speedup > 1 for step in steps)
    for one, following in itertools.pairwise(steps):
        assert one.after_s == pytest.approx(following.before_s)


@pytest.mark.parametrize("operation", cost.FEATURES)
def test_every_request_is_judged_and_only_valid_backends_are_chosen(operation):
    names, choices = zip(*cost.FEATURES[operation].items(), strict=True)
    for values in itertools.product(*choices):
        given_ = dict(zip(names, values, strict=True))
        out = cost.dispatch(operation, **given_)
        valid = [one.backend for one in out.verdicts if one.valid]
        assert out.chosen == (valid[0] if valid else None)
        assert not set(out.fast_but_invalid) & set(valid)
        for one in out.verdicts:
            assert all(" must be " in broken and ", got " in broken for broken in one.broken)


def test_every_rule_decides_something_and_every_backend_is_chosen_somewhere():
    chosen, broken = set(), set()
    for operation, features in cost.FEATURES.items():
        for values in itertools.product(*features.values()):
            out = cost.dispatch(operation, **dict(zip(features, values, strict=True)))
            chosen.add(out.chosen)
            broken |= {(one.backend, rule.split(" must")[0]) for one in out.verdicts for rule in one.broken}
    assert {one.name for one in cost.BACKENDS} <= chosen
    assert {(one.name, rule.feature) for one in cost.BACKENDS for rule in one.rules} <= broken


ATTENTION = {
    "head_dim": 128,
    "kv_dtype": "16-bit",
    "page_size": 16,
    "attention": "standard",
    "mask": "causal",
}


@pytest.mark.parametrize(
    "operation, features, chosen",
    [
        ("attention", {**ATTENTION, "gpu_sm": 90}, "FlashAttention 3"),
        ("attention", {**ATTENTION, "gpu_sm": 80}, "FlashAttention 2"),
        ("attention", {**ATTENTION, "gpu_sm": 80, "kv_dtype": "fp8"}, "FlashInfer"),
        ("attention", {**ATTENTION, "gpu_sm": 80, "kv_dtype": "fp8", "head_dim": 80}, "Triton attention"),
        ("attention", {**ATTENTION, "gpu_sm": 90, "mask": "custom"}, "FlexAttention"),
        (
            "attention",
            {**ATTENTION, "gpu_sm": 90, "attention": "latent", "page_size": 64},
            "FlashAttention MLA",
        ),
        (
            "attention",
            {**ATTENTION, "gpu_sm": 90, "attention": "latent", "page_size": 64, "kv_dtype": "fp8"},
            "FlashMLA",
        ),
        ("attention", {**ATTENTION, "gpu_sm": 90, "attention": "latent", "kv_dtype": "int8"}, None),
        ("gemm", {"gpu_sm": 90, "weights": "int4 W4A16", "group": 128}, "Machete"),
        ("gemm", {"gpu_sm": 90, "weights": "int4 W4A16", "group": 32}, "Marlin"),
        ("gemm", {"gpu_sm": 89, "weights": "int4 W4A16", "group": 128}, "Marlin"),
        ("gemm", {"gpu_sm": 75, "weights": "int4 W4A16", "group": 128}, "dequantize, then cuBLAS"),
        ("gemm", {"gpu_sm": 80, "weights": "fp8", "group": 0}, "Triton GEMM"),
        (
            "all-reduce",
            {"gpus": 8, "nodes": 1, "nvlink": True, "message_bytes": 128 * 1024},
            "one-shot over NVLink, 8 GPUs",
        ),
        ("all-reduce", {"gpus": 8, "nodes": 1, "nvlink": True, "message_bytes": 2**20}, "NCCL"),
    ],
)
def test_the_matrix_chooses(operation, features, chosen):
    assert cost.dispatch(operation, **features).chosen == chosen


def test_fast_but_invalid_is_named_with_its_reason():
    out = cost.dispatch("gemm", gpu_sm=89, weights="int4 W4A16", group=128)
    assert out.fast_but_invalid == ("Machete",)
    assert out.verdicts[0].broken == ("gpu_sm must be 90, got 89",)


@pytest.mark.parametrize("case", cost.CASES, ids=lambda case: case.name)
def test_the_detective_solves_its_cases(case):
    found = cost.diagnose(case.seen)
    assert found.bottleneck == case.answer and found.path
    assert [check.hit for check in found.checks[:-1]] == [False] * (len(found.checks) - 1)


def test_the_cases_show_every_bottleneck_and_the_flowchart_its_order():
    assert {case.answer for case in cost.CASES} == set(cost.PATHS)
    everything = cost.Symptoms(0.5, 0.5, 0.5, 2.0, 1.0, 295.2, 0.9, 0.9)
    assert cost.diagnose(everything).bottleneck == "input"
    assert len(cost.diagnose(cost.Symptoms(bandwidth_share=0.9)).checks) == 5
    assert len(cost.PATTERNS) == 7


def test_the_worked_case_gains_more_from_the_many_than_from_the_largest():
    case = cost.StepCase()
    assert case.gemm_ceiling() < 1.08 < case.speedup == pytest.approx(1.38, abs=0.01)


@given(devices=st.integers(1, 1024), payload=st.floats(1, 1e10))
def test_a_ring_sends_less_and_hops_more_than_a_tree(devices, payload):
    ring, tree = (
        cost.all_reduce(payload, devices, 450e9, 5e-6, algorithm=a, hop_s=1e-6) for a in ("ring", "tree")
    )
    assert ring.sent_bytes <= 2 * payload and ring.sent_bytes <= tree.sent_bytes
    assert devices < 4 or ring.latency_s > tree.latency_s
    if devices == 1:
        assert ring.sent_bytes == tree.sent_bytes == 0


def test_hops_of_ring_and_tree_by_hand():
    ring, tree = (cost.all_reduce(8e9, 8, 1e9, 1.0, algorithm=a, hop_s=1.0) for a in ("ring", "tree"))
    assert (ring.sent_bytes, ring.latency_s, ring.total_s) == (14e9, 1 + 14, 29)
    assert (tree.sent_bytes, tree.latency_s, tree.total_s) == (16e9, 1 + 6, 23)


@given(buckets=st.integers(1, 200), link=st.floats(1e9, 1e12))
def test_buckets_leave_in_order_and_never_before_they_are_full(buckets, link):
    timeline = cost.bucket_timeline(16e9, 16e9 / buckets, 0.166, devices=8, link_byte_s=link)
    assert abs(len(timeline) - buckets) <= 1
    assert timeline[-1].ready_s == pytest.approx(0.166)
    assert all(one.ready_s <= one.start_s < one.end_s for one in timeline)
    assert all(one.end_s <= following.start_s for one, following in itertools.pairwise(timeline))


def test_buckets_by_hand():
    """10 bytes in buckets of 4 over 10 s, a ring of 2 at 1 byte/s, 1 s a launch: 5 s, 5 s and 3 s."""
    times = cost.bucket_timeline(10, 4, 10.0, devices=2, link_byte_s=1, launch_s=1.0)
    assert [(one.ready_s, one.start_s, one.end_s) for one in times] == [(4, 4, 9), (8, 9, 14), (10, 14, 17)]


def test_bucket_size_has_a_best_middle():
    """One bucket overlaps nothing; a hundred thousand pay a launch each."""
    end = {
        size: cost.bucket_timeline(16e9, size, 0.166, devices=8, link_byte_s=450e9)[-1].end_s
        for size in (16e9, 25e6, 0.2e6)
    }
    assert end[16e9] == pytest.approx(0.166 + 1.75 * 16e9 / 450e9 + 5e-6)
    assert end[25e6] < end[16e9] and end[25e6] < end[0.2e6]


@given(gpus=st.floats(8, 1023))
def test_more_gpus_expose_more(gpus):
    assert 0 < cost.reported_exposed_share(gpus) < cost.reported_exposed_share(gpus + 1)


@given(acceptance=st.floats(0, 0.999), drafts=st.integers(0, 12))
def test_tokens_of_a_round_follow_the_geometric_law(acceptance, drafts):
    tokens = cost.expected_tokens(acceptance, drafts)
    assert tokens == pytest.approx((1 - acceptance ** (drafts + 1)) / (1 - acceptance))
    chances = cost.accepted_chances(acceptance, drafts)
    assert sum(chances) == pytest.approx(1)
    assert sum((n + 1) * chance for n, chance in enumerate(chances)) == pytest.approx(tokens)
    assert 1 <= tokens <= drafts + 1 == cost.expected_tokens(1.0, drafts)


@given(drafts=st.integers(1, 10), draft_ms=st.floats(0, 40))
def test_break_even_acceptance_breaks_even(drafts, draft_ms):
    even = cost.break_even_acceptance(drafts, draft_ms / 1e3, 32e-3)
    if even is None:
        assert (draft_ms + 32) / (drafts + 1) >= 32 * (1 - 1e-9)
    elif 0 < even < 1:
        assert cost.speculation(even, drafts, draft_ms / 1e3, 32e-3).speedup == pytest.approx(1, abs=1e-6)


def test_guessing_more_pays_only_when_guesses_are_kept():
    best = [cost.best_drafts(acceptance, 0.8e-3, 32e-3) for acceptance in (0.0, 0.5, 0.78, 0.95)]
    assert best[0] == 0 and best == sorted(best) and best[-1] > best[1] > 0
    assert cost.best_drafts(1.0, 0.0, 32e-3, most=7) == 7


def test_guessing_at_a_batch_by_hand():
    """10 weights, draft of 2, a byte each, 1 byte/s and 4 FLOP/s: a step is max(10, 5 x batch) seconds."""
    given_ = {"parameters": 10, "draft_parameters": 2, "peak_flop_s": 4, "bandwidth_byte_s": 1}
    one = cost.speculation_at_batch(0.5, 3, 1, param_bytes=1, draft_param_bytes=1, **given_)
    assert (one.plain_s, one.draft_s, one.verify_s) == (10, 6, 20)
    assert one.token_s == pytest.approx(26 / 1.875) and not one.pays
    wide = cost.speculation_at_batch(0.5, 3, 4, **given_)
    assert (wide.plain_s, wide.draft_s, wide.verify_s) == (20, 12, 80)


@given(batch=st.integers(1, 512))
def test_batching_eats_the_gain_of_guessing(batch):
    given_ = {"drafts": 5, "parameters": 70e9, "draft_parameters": 1.5e9, **H100}
    now, later = (cost.speculation_at_batch(0.78, batch=b, **given_).speedup for b in (batch, 2 * batch))
    assert later <= now + 1e-9


@given(
    target=st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
    draft=st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
)
def test_the_accept_rule_keeps_the_target_distribution(target, draft):
    size = min(len(target), len(draft))
    p, q = ([x / sum(side[:size]) for x in side[:size]] for side in (target, draft))
    rate, redraw = cost.acceptance_rate(p, q), cost.residual(p, q)
    for i in range(size):
        assert min(p[i], q[i]) + (1 - rate) * redraw[i] == pytest.approx(p[i], abs=1e-9)


def test_accepted_runs_come_out_as_simulated():
    draw, rounds = random.Random(7), 20_000
    total = sum(next((n for n in range(5) if draw.random() >= 0.78), 5) + 1 for _ in range(rounds))
    assert total / rounds == pytest.approx(cost.expected_tokens(0.78, 5), rel=0.01)


def test_the_frontier_keeps_what_nothing_dominates():
    goals = {"tokens_s": "more", "latency_s": "less"}
    points = [
        {"tokens_s": 50, "latency_s": 0.02},
        {"tokens_s": 533, "latency_s": 0.12},
        {"tokens_s": 500, "latency_s": 0.13},
    ]
    assert cost.frontier(points, goals) == [0, 1]
    assert cost.dominates(points[1], points[2], goals) and not cost.dominates(points[0], points[0], goals)


def test_one_better_goal_at_equal_others_dominates():
    goals = {"tokens_s": "more", "latency_s": "less"}
    assert cost.dominates({"tokens_s": 2, "latency_s": 1}, {"tokens_s": 1, "latency_s": 1}, goals)
    assert not cost.dominates({"tokens_s": 2, "latency_s": 2}, {"tokens_s": 1, "latency_s": 1}, goals)


def test_combinations_name_how_two_techniques_meet():
    assert {how for _, _, how, _ in cost.COMBINATIONS} == {"adds", "repeats", "conflicts"}


def test_a_verdict_names_the_rules_that_its_words_tell():
    features = {"gpu_sm": 90, "weights": "int4 W4A16", "group": 32}
    machete = cost.dispatch("gemm", **features).verdicts[0]
    assert machete.backend == "Machete" and [rule.feature for rule in machete.broken_rules] == ["group"]
    assert len(machete.broken) == 1 and "got 32" in machete.broken[0]


def test_the_places_over_a_format_are_those_of_its_dispatches():
    """On an H100 FlashAttention 3 stands third and reads fp8 too; int8 is left to Triton, the sixth."""
    features = {**ATTENTION, "gpu_sm": 90}
    assert cost.places_over("kv_dtype", "attention", **features) == {"16-bit": 3, "fp8": 3, "int8": 6}
    weights = {"weights": "int4 W4A16", "group": 128}
    assert cost.places_over("gpu_sm", "gemm", gpu_sm=90, **weights) == {
        75: 8,
        80: 2,
        86: 2,
        89: 2,
        90: 1,
        100: 2,
    }
    assert set(cost.places_over("group", "moe", gpu_sm=75, **weights).values()) == {0}


def test_the_gaps_of_fifty_launches_take_a_fifth():
    assert cost.gap_share(50, 10e-6, 2e-3) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="work_s"):
        cost.gap_share(50, 10e-6, 0)


def test_one_counter_tells_the_other():
    """A LayerNorm's 2.8 of 3.35 TB/s at 5.36 FLOP per byte are 15 of 989 TFLOP/s, and the way back."""
    seen = cost.counters(15 / 2.8, of_bandwidth=2.8 / 3.35)
    assert seen["compute_share"] == pytest.approx(15 / 989, rel=0.001)
    back = cost.counters(15 / 2.8, of_flops=seen["compute_share"])
    assert back["bandwidth_share"] == pytest.approx(2.8 / 3.35)
    for given_ in ({}, {"of_flops": 0.5, "of_bandwidth": 0.5}):
        with pytest.raises(ValueError, match="must be given, got both or none"):
            cost.counters(1.0, **given_)
    assert all(case.seen.compute_share > 0 and case.seen.bandwidth_share > 0 for case in cost.CASES)


@pytest.mark.parametrize("kind, kernels", [("standard", 7), ("latent", 4)])
def test_a_race_is_between_kernels_of_one_job(kind, kernels):
    features = dict(gpu_sm=90, head_dim=128, kv_dtype="16-bit", page_size=64, attention=kind, mask="causal")
    every = cost.dispatch("attention", **features)
    job = every.of_job("attention")
    assert [one.preference for one in job.verdicts] == list(range(kernels))
    assert job.chosen == every.chosen and job.place <= every.place
    assert set(cost.JOBS) == set(cost.FEATURES) and all(
        job in cost.FEATURES[op] for op, job in cost.JOBS.items()
    )


def test_a_link_s_busy_time_grows_to_its_sends():
    sends = cost.bucket_timeline(1e9, 1e8, 0.1, devices=8, link_byte_s=1e11)
    took = sum(one.end_s - one.start_s for one in sends)
    seen = [cost.sent_s(sends, sends[-1].end_s * k / 10) for k in range(11)]
    assert seen[0] == 0 and seen == sorted(seen) and seen[-1] == pytest.approx(took)
