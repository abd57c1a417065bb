"""Expert load balance in numpy: loads, the busiest device, a limit, two ways to balance, placement and copies."""

import math

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between, odd
from grader.topics.expert_load_balance import budgets
from grader.topics.expert_load_balance.concepts_wrong import CELLS
from kernels.expert_load_balance import cost, reference

LESSON = "course/04_expert_load_balance"


def count_loads(chosen, device_of, devices):
    loads = reference.loads_of(chosen, len(device_of))
    return loads, reference.rank_loads(loads, [(int(device),) for device in device_of], devices)


def layer_time(loads, device_of, devices, row_s, exchange_s):
    """Busiest over mean, seconds, and the share of the devices' time with the experts that is spent waiting."""
    placement = [(int(device),) for device in device_of]
    uneven = reference.imbalance(reference.rank_loads(loads, placement, devices))
    return uneven, reference.step_time(loads, placement, devices, row_s, exchange_s), 1 - 1 / uneven


def hot_slowdown(top_k, experts, devices, hot_share):
    """The step with one hot expert over the step with the same work spread evenly."""
    rest = (top_k - hot_share) / (experts - 1)
    loads = np.array([hot_share] + [rest] * (experts - 1))
    return reference.imbalance(reference.rank_loads(loads, cost.contiguous(experts, devices), devices))


def least_hot_share(top_k, experts, devices, slowdown):
    """How much of all tokens the hot expert must take; infinite where even all of them are not enough."""
    beside = experts // devices - 1  # experts that share its device
    fixed = beside * top_k / (experts - 1)
    share = (slowdown * top_k / devices - fixed) / (1 - beside / (experts - 1))
    return share if share <= 1 + 1e-12 else math.inf


def capacity_kept(chosen, experts, factor):
    capacity = cost.capacity_limit(*chosen.shape, experts, factor)
    return capacity, reference.kept_by_capacity(chosen, experts, capacity)


def balance_gradient(x, router, chosen):
    """The auxiliary loss and its gradient by the router's weights."""
    value, by_logits = reference.auxiliary_loss(x @ router, chosen)
    return value, x.T @ by_logits


def bias_rounds(scores, top_k, rate, rounds):
    bias, seen = np.zeros(scores.shape[1]), []
    for _ in range(rounds):
        seen.append(reference.loads_of(reference.choose(scores, top_k, bias), scores.shape[1]))
        bias = reference.bias_update(bias, seen[-1], rate)
    return bias, np.array(seen)


def place_experts(loads, devices):
    """Heaviest first, to the least loaded device that has a slot free."""
    return np.array([copies[0] for copies in cost.greedy(loads.tolist(), devices)])


def copies_of(loads, devices, spare):
    """Copies of each expert and the tokens that the busiest of all copies gets."""
    copies = np.ones(len(loads), int)
    for _ in range(spare):
        share = np.where(copies < devices, loads / copies, -1.0)
        copies[share.argmax()] += 1
    return copies, float((loads / copies).max())


def _chosen(rng, tokens, top_k, experts, skew=1.0):
    """Picks of `tokens` tokens, no expert twice in one; the popular experts have no numbers of their own."""
    wanted = -skew * np.log(np.arange(1, experts + 1))[rng.permutation(experts)]
    return np.argsort(-(wanted + rng.gumbel(size=(tokens, experts))), axis=1)[:, :top_k]


def _spread(rng, experts, devices):
    """A device for each expert, as many on one as on another, in no order."""
    return rng.permutation(np.arange(experts) % devices)


def _counted(rng, devices, each, top_k=2, last=True):
    experts = devices * each
    chosen = _chosen(rng, odd(rng, 9, 60), top_k, experts)
    device_of = _spread(rng, experts, devices)
    return (chosen if last else np.where(chosen == experts - 1, 0, chosen)), device_of, devices


def _timed(rng, devices, each):
    experts = devices * each
    loads = np.bincount(_chosen(rng, 97, 2, experts).reshape(-1), minlength=experts)
    return loads, _spread(rng, experts, devices), devices, rng.uniform(1e-7, 1e-6), rng.uniform(1e-5, 1e-4)


def _hot(rng, each, low, high):
    devices = 2 ** between(rng, 2, 4)
    experts, top_k = devices * each, between(rng, 2, 3)
    even = top_k / experts
    return top_k, experts, devices, even + (1 - even) * rng.uniform(low, high)


def _cold(rng):
    devices = 2 ** between(rng, 1, 3)
    experts, top_k = 2 * devices, between(rng, 1, 2)
    return top_k, experts, devices, top_k / experts * rng.uniform(0.1, 0.8)


def _reached(rng, each, low, high):
    """A slowdown that some share gives."""
    given = _hot(rng, each, low, high)
    return *given[:3], float(hot_slowdown(*given))


def _beyond(rng):
    devices, each = 2 ** between(rng, 2, 3), between(rng, 2, 5)
    top_k = between(rng, 2, 4)
    most = float(hot_slowdown(top_k, devices * each, devices, 1.0))
    return top_k, devices * each, devices, most * rng.uniform(1.05, 1.4)


def _just_enough(rng):
    """A slowdown that takes all tokens, in powers of two, which any order of the operations gives exactly."""
    devices, top_k = 2 ** between(rng, 2, 5), 2 ** between(rng, 0, 1)
    return top_k, devices, devices, devices / top_k


def _just_above(rng, by):
    """A limit a hair above a whole number, by a factor that is exact in binary."""
    experts = 2 ** between(rng, 2, 3)
    return _chosen(rng, experts * between(rng, 3, 7), 2, experts, 1.5), experts, 1 + by


def _limited(rng, factor, top_k=2):
    experts = 2 ** between(rng, 2, 3)
    return _chosen(rng, odd(rng, 19, 60), top_k, experts, 1.5), experts, factor


def _routed(rng, tokens, experts, top_k, apart=1.0):
    """Tokens with much in common, a router, and what it chose."""
    x = rng.standard_normal((tokens, 6)) + 2 * rng.standard_normal(6)
    router = apart * rng.standard_normal((6, experts)) / 2
    return x, router, reference.choose(reference.probabilities(x @ router), top_k)


def _equal_sums(rng, tokens, experts):
    """Scores that are whole quarters, so that with steps of a quarter sums are often equal, and exactly so."""
    return rng.integers(0, 4, (tokens, experts)) / 4


def _scores(rng, tokens, experts):
    return reference.probabilities(rng.standard_normal((tokens, experts)) + rng.standard_normal(experts))


def _loads(rng, experts, skew=1.0, tokens=4000):
    """Measured loads: no two alike, and some much larger than the rest."""
    share = (1.0 + np.arange(experts)) ** -skew * rng.uniform(0.7, 1.3, experts)
    return np.round(tokens * share[rng.permutation(experts)] / share.sum() + rng.permutation(experts) / 8, 3)


COUNT_LOADS = NumpyQuestion(
    id="expert_load_balance.count_loads",
    notebook="concepts",
    asks="count_loads(chosen, device_of, devices): the tokens of each expert and of each device, for the experts (tokens, top_k) that tokens chose and the device of each expert",
    entry="count_loads",
    parts=(Part("values", 2, "calls"),),
    reference=count_loads,
    public=(
        Call((np.array([[0, 2], [2, 1], [2, 0]]), np.array([0, 0, 1, 1]), 2), "an expert without a token"),
        Call(_counted(np.random.default_rng(1), 4, 2), "eight experts on four devices"),
    ),
    hidden=lambda rng: (
        [Call(_counted(rng, between(rng, 2, 5), between(rng, 1, 4)), "another routing") for _ in range(4)]
        + [Call(_counted(rng, 4, 2, 1), "one expert a token")]
        + [Call(_counted(rng, 4, 2, 2, last=False), "the last expert without a token")]
        + [Call((np.array([[0, 1]]), np.arange(4), 4), "devices without a token")]
        + [Call((_chosen(rng, 20, 2, 4), np.array([2, 0, 3, 2]), 6), "devices without an expert")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "Skew that is real"',
    hints=(
        "Each entry of chosen is one token for one expert; the order of the tokens does not matter here. Which function of numpy counts how often each number occurs?",
        "np.bincount(chosen.reshape(-1), minlength=...) counts the experts, those that nobody chose among them. A device has the sum of what its experts have.",
        "loads = np.bincount(chosen.reshape(-1), minlength=len(device_of)); np.bincount(device_of, weights=loads, minlength=devices)",
    ),
    mistakes=CELLS.mistakes("count_loads"),
)

LAYER_TIME = NumpyQuestion(
    id="expert_load_balance.layer_time",
    notebook="concepts",
    asks="layer_time(loads, device_of, devices, row_s, exchange_s): the busiest device's tokens over the mean, the seconds of the layer when a token takes row_s on its device and all exchanges together exchange_s, and the share of the devices' time with their experts that they spend waiting",
    entry="layer_time",
    parts=(Part("values", 2, "calls"),),
    reference=layer_time,
    public=(
        Call((np.array([6, 2, 2, 2]), np.array([0, 0, 1, 1]), 2, 1e-6, 5e-6), "two devices"),
        Call((np.array([9, 1, 1, 1]), np.array([0, 1, 2, 3]), 4, 1e-6, 5e-6), "one hot expert"),
    ),
    hidden=lambda rng: (
        [Call(_timed(rng, between(rng, 2, 5), between(rng, 2, 3)), "another layer") for _ in range(5)]
        + [Call((np.array([3, 3, 3, 3]), np.array([1, 0, 1, 0]), 2, 1e-6, 0.0), "even loads, no exchange")]
        + [Call((np.array([5, 0, 7, 0]), np.array([2, 1, 0, 1]), 3, 1e-6, 1e-5), "a device without a token")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "The step is the busiest device\'s"',
    hints=(
        "All devices wait for the last one. Which single number of tokens decides when the experts are done?",
        "Sum the loads by device. The time is the largest sum times row_s, plus the exchange. A device that has half of the largest sum waits half of the time: on average the work is mean / largest.",
        "held = np.bincount(device_of, loads, devices); held.max() / held.mean(), held.max() * row_s + exchange_s, 1 - held.mean() / held.max()",
    ),
    mistakes=CELLS.mistakes("layer_time"),
)

HOT_SLOWDOWN = NumpyQuestion(
    id="expert_load_balance.hot_slowdown",
    notebook="concepts",
    asks="hot_slowdown(top_k, experts, devices, hot_share): how many times as long the experts take, compared with even loads, when hot_share of all tokens have expert 0 among their top_k, all other picks are spread evenly over the other experts, and each device holds experts / devices neighbours",
    entry="hot_slowdown",
    parts=(Part("values", 2, "calls"),),
    reference=hot_slowdown,
    public=(
        Call((2, 8, 8, 1.0), "all tokens, an expert a device"),
        Call((2, 8, 4, 0.5), "two experts a device"),
        Call((1, 4, 4, 0.25), "even"),
    ),
    hidden=lambda rng: (
        [Call(_hot(rng, each, 0.2, 0.9), f"{each} experts a device") for each in (1, 2, 4) for _ in range(2)]
        + [Call(_cold(rng), "an expert that is colder than the rest")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "The step is the busiest device\'s"',
    hints=(
        "Count in picks a token: the hot expert has hot_share of them, all experts together top_k. What has each of the others?",
        "Each other expert has (top_k - hot_share) / (experts - 1). The hot one's device holds experts // devices - 1 of these beside it; another device holds experts // devices of them.",
        "each = (top_k - hot_share) / (experts - 1); per = experts // devices; max(hot_share + (per - 1) * each, per * each) / (top_k / devices)",
    ),
    mistakes=CELLS.mistakes("hot_slowdown"),
)

LEAST_HOT_SHARE = NumpyQuestion(
    id="expert_load_balance.least_hot_share",
    notebook="concepts",
    asks="least_hot_share(top_k, experts, devices, slowdown): the hot_share, top_k / experts or more, with which hot_slowdown is `slowdown`, which is 1 or more; math.inf where all tokens are not enough",
    entry="least_hot_share",
    parts=(Part("values", 2, "calls"),),
    reference=least_hot_share,
    public=(
        Call((2, 8, 8, 2.5), "two and a half times"),
        Call((2, 8, 4, 1.5), "two experts a device"),
        Call((8, 64, 8, 2.5), "more than all tokens can do"),
    ),
    hidden=lambda rng: (
        [
            Call(_reached(rng, each, 0.2, 0.9), f"{each} experts a device")
            for each in (1, 2, 4)
            for _ in range(2)
        ]
        + [Call(_beyond(rng), "more than all tokens can do") for _ in range(2)]
        + [Call(_just_enough(rng), "all tokens, just enough")]
        + [Call((between(rng, 1, 3), 8 * each, 8, 1.0), "no slowdown") for each in (1, 2, 4)]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "The step is the busiest device\'s"',
    hints=(
        "Write the slowdown of a hot expert as an equation with hot_share unknown. It is linear.",
        "hot_share + (per - 1) (top_k - hot_share) / (experts - 1) = slowdown top_k / devices: bring hot_share to one side. A share above 1 does not exist.",
        "beside = (per - 1) / (experts - 1); share = (slowdown * top_k / devices - beside * top_k) / (1 - beside); share if share <= 1 else math.inf",
    ),
    mistakes=CELLS.mistakes("least_hot_share"),
)

CAPACITY_KEPT = NumpyQuestion(
    id="expert_load_balance.capacity_kept",
    notebook="concepts",
    asks="capacity_kept(chosen, experts, factor): how many tokens an expert takes, factor times the even share rounded up, and for each entry of chosen (tokens, top_k) whether it is kept: all first choices in the order of the tokens, then all second ones, and so on",
    entry="capacity_kept",
    parts=(Part("values", 3, "calls"),),
    reference=capacity_kept,
    public=(
        Call((np.array([[0, 1], [0, 1], [0, 2], [1, 0]]), 4, 1.0), "room for two"),
        Call(_limited(np.random.default_rng(4), 1.25), "a quarter more than even"),
    ),
    hidden=lambda rng: (
        [Call(_limited(rng, factor), "another routing") for factor in (0.5, 1.0, 1.25, 1.5)]
        + [Call(_limited(rng, 1.0, 3), "three experts a token"), Call(_limited(rng, 8.0), "room for all")]
        + [Call(_limited(rng, 1.25, 1), "one expert a token")]
        + [Call(_just_above(rng, by), "a limit just above a whole number") for by in (2.0**-8, 2.0**-12)]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "A limit, and what it drops"',
    hints=(
        "Who comes first matters: walk through column 0 of chosen from the top to the bottom, then through column 1. What do you have to remember on the way?",
        "A count for each expert: a choice is kept while its expert's count is below the capacity, and only a kept one adds to it. The capacity is math.ceil(factor * tokens * top_k / experts).",
        "for j in range(top_k): for t in range(tokens): e = chosen[t, j]; kept[t, j] = taken[e] < capacity; taken[e] += kept[t, j]",
    ),
    mistakes=CELLS.mistakes("capacity_kept"),
)

BALANCE_GRADIENT = NumpyQuestion(
    id="expert_load_balance.balance_gradient",
    notebook="concepts",
    asks="balance_gradient(x, router, chosen): the auxiliary loss, experts times the sum over experts of (share of picks) (mean probability), with probabilities the softmax of x @ router, and its gradient by router; shares are counts and have none",
    entry="balance_gradient",
    parts=(Part("values", 3, "calls"),),
    reference=balance_gradient,
    rtol=1e-7,
    atol=1e-10,
    public=(
        Call(_routed(np.random.default_rng(5), 5, 3, 1), "three experts"),
        Call(_routed(np.random.default_rng(6), 12, 4, 2), "two of four"),
    ),
    hidden=lambda rng: (
        [
            Call(_routed(rng, odd(rng, 9, 40), between(rng, 3, 8), top_k), "another router")
            for top_k in (1, 2, 3)
        ]
        + [Call(_routed(rng, 21, 6, 2, 8.0), "a router that is sure of itself")]
        + [Call(_routed(rng, 21, 6, 2, 3000.0), "logits in the thousands")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "Make the router choose evenly"',
    hints=(
        "Take the share of picks as plain numbers f. The loss is then experts times the mean over tokens of p @ f. How does a softmax change when a logit moves?",
        "For one token, d(p @ f) / d(logits) = p (f - p @ f). There is a factor experts / tokens before it, and logits = x @ router takes a gradient G by logits to x.T @ G by router.",
        "f = np.bincount(chosen.reshape(-1), minlength=experts) / chosen.size; g = experts / tokens * p * (f - (p @ f)[:, None]); experts * (f @ p.mean(0)), x.T @ g",
    ),
    mistakes=CELLS.mistakes("balance_gradient"),
)

BIAS_ROUNDS = NumpyQuestion(
    id="expert_load_balance.bias_rounds",
    notebook="concepts",
    asks="bias_rounds(scores, top_k, rate, rounds): from a bias of 0, in each round choose each token's top_k experts by score + bias (of equals the lower), count their loads, then move each expert's bias down by rate where its load is above the mean, up where it is below; the bias in the end, and the loads of every round",
    entry="bias_rounds",
    parts=(Part("values", 2, "calls"),),
    reference=bias_rounds,
    public=(
        Call((_scores(np.random.default_rng(7), 6, 3), 1, 0.1, 2), "two rounds"),
        Call((_scores(np.random.default_rng(8), 40, 4), 2, 0.02, 5), "five rounds"),
    ),
    hidden=lambda rng: (
        [
            Call((_scores(rng, 8 * between(rng, 4, 8), 8), k, 0.01 * between(rng, 1, 9), 6), "other scores")
            for k in (1, 2, 3)
        ]
        + [Call((_scores(rng, 41, 5), 2, 0.03, 12), "many rounds")]
        + [Call((_equal_sums(rng, 40, experts), 2, 0.25, 4), "equal sums") for experts in (5, 24)]
        + [Call((np.tile(np.eye(4) + 0.1, (3, 1)), 1, 0.01, 3), "loads that are even from the start")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "Make the router choose evenly"',
    hints=(
        "One round has three lines: choose, count, move. What of a round does the next one start from?",
        "np.argsort(-(scores + bias), axis=1, kind='stable')[:, :top_k] chooses; np.sign(loads.mean() - loads) is +1 below the mean and -1 above it.",
        "for each round: chosen = np.argsort(-(scores + bias), axis=1, kind='stable')[:, :top_k]; loads = np.bincount(chosen.reshape(-1), minlength=len(bias)); bias = bias + rate * np.sign(loads.mean() - loads)",
    ),
    mistakes=CELLS.mistakes("bias_rounds"),
)

PLACE_EXPERTS = NumpyQuestion(
    id="expert_load_balance.place_experts",
    notebook="concepts",
    asks="place_experts(loads, devices): the device of each expert, len(loads) / devices of them on each, so that the busiest device has few tokens: at most 4/3 of the best there is for 12 experts and fewer, and at most 2% more than heaviest first for more",
    entry="place_experts",
    parts=(Part("values", 3, "calls"),),
    reference=place_experts,
    agree=budgets.good_placement,
    public=(
        Call((np.array([9.0, 8.0, 1.0, 2.0]), 2), "two devices"),
        Call((_loads(np.random.default_rng(9), 8), 4), "four devices"),
        Call((_loads(np.random.default_rng(10), 32), 8), "32 experts"),
    ),
    hidden=lambda rng: (
        [Call((_loads(rng, 8, skew), 4), "eight experts") for skew in (0.5, 1.0)]
        + [Call((_loads(rng, 12, 1.0), devices), "twelve experts") for devices in (3, 4)]
        + [Call((_loads(rng, 8 * each, 0.7), 8), "many experts") for each in (4, 8, 16)]
        + [Call((np.sort(_loads(rng, 64, 0.8)), 8), "loads in order")]
    ),
    where=f'{LESSON}/c_placement.ipynb, "Where experts live, and copies of them"',
    hints=(
        "Small pieces fill gaps, large ones make them. In which order would you load boxes into vans?",
        "Heaviest expert first, each to the device that has the fewest tokens so far among those with a slot free.",
        "for e in np.argsort(-loads): free = [d for d in range(devices) if count[d] < slots]; d = min(free, key=lambda d: held[d]); held[d] += loads[e]; count[d] += 1; device_of[e] = d",
    ),
    mistakes=CELLS.mistakes("place_experts"),
)

COPIES_OF = NumpyQuestion(
    id="expert_load_balance.copies_of",
    notebook="concepts",
    asks="copies_of(loads, devices, spare): how many copies each expert gets when `spare` copies more than one each are given out one by one, to the expert with the most tokens a copy (of equals the lower), at most one a device; and the tokens of the busiest copy",
    entry="copies_of",
    parts=(Part("values", 2, "calls"),),
    reference=copies_of,
    public=(
        Call((np.array([12.0, 5.0, 4.0, 3.0]), 4, 2), "two spare copies"),
        Call((np.array([40.0, 1.0, 1.0]), 2, 2), "a copy on every device already"),
    ),
    hidden=lambda rng: (
        [Call((_loads(rng, between(rng, 6, 20)), 8, between(rng, 4, 12)), "other loads") for _ in range(4)]
        + [Call((_loads(rng, 6, 2.5), 3, 5), "a copy on every device already") for _ in range(2)]
        + [Call((_loads(rng, 6), 4, 0), "no spare copy")]
        + [
            Call(
                (np.array([0.0, 9.0, 0.0, 4.0, 0.0]) * between(rng, 2, 99), 3, spare),
                "copies for experts without tokens",
            )
            for spare in (6, 8)
        ]
        + [
            Call((np.array([5.0, 11.0, 3.0, 2.0]), 8, 2), "shares that differ by less than one"),
            Call((np.array([13.0, 9.0, 2.0, 1.0]), 8, 4), "shares that differ by less than one"),
        ]
    ),
    where=f'{LESSON}/c_placement.ipynb, "Where experts live, and copies of them"',
    hints=(
        "A copy halves what its expert's busiest copy has, a second one leaves a third. Who needs the next one most, after each that was given?",
        "Keep copies, all ones. spare times: of the experts with fewer copies than devices, the one with the largest loads / copies gets one more.",
        "share = np.where(copies < devices, loads / copies, -1); copies[share.argmax()] += 1",
    ),
    mistakes=CELLS.mistakes("copies_of"),
)

QUESTIONS = (
    COUNT_LOADS,
    LAYER_TIME,
    HOT_SLOWDOWN,
    LEAST_HOT_SHARE,
    CAPACITY_KEPT,
    BALANCE_GRADIENT,
    BIAS_ROUNDS,
    PLACE_EXPERTS,
    COPIES_OF,
)
# Answers that hold for some calls alone.
SHORTCUTS = {
    HOT_SLOWDOWN.id: {"an expert a device": lambda k, experts, devices, share: share * devices / k},
    LAYER_TIME.id: {
        "two devices": lambda loads, device_of, devices, row_s, exchange_s: layer_time(
            loads, device_of % 2, 2, row_s, exchange_s
        )
    },
    CAPACITY_KEPT.id: {"room for all": lambda chosen, experts, factor: capacity_kept(chosen, experts, 99.0)},
}
