"""Wrong answers to the numpy questions, each a cell: the suites hand it in, and the report computes with it.

(sentence, the cell's body) by question and mistake; ENTRY holds what the body stands in.
"""

from grader.questions.cells import Cells

ENTRY = {
    "count_loads": "chosen, device_of, devices",
    "layer_time": "loads, device_of, devices, row_s, exchange_s",
    "hot_slowdown": "top_k, experts, devices, hot_share",
    "least_hot_share": "top_k, experts, devices, slowdown",
    "capacity_kept": "chosen, experts, factor",
    "balance_gradient": "x, router, chosen",
    "bias_rounds": "scores, top_k, rate, rounds",
    "place_experts": "loads, devices",
    "copies_of": "loads, devices, spare",
}
COUNT = """loads = np.bincount({picks}, minlength={experts})
return {result}"""
RIGHT_COUNT = {
    "picks": "chosen.reshape(-1)",
    "experts": "len(device_of)",
    "result": "loads, np.bincount(device_of, loads, devices)",
}


def count(**changed: str) -> str:
    return COUNT.format(**RIGHT_COUNT | changed)


TIME = """held = np.bincount(device_of, loads, devices)
return {uneven}, {seconds}, {waiting}"""
RIGHT_TIME = {
    "uneven": "held.max() / held.mean()",
    "seconds": "held.max() * row_s + exchange_s",
    "waiting": "1 - held.mean() / held.max()",
}


def time(**changed: str) -> str:
    return TIME.format(**RIGHT_TIME | changed)


HOT = """per = experts // devices
each = {each}
return {busiest} / {mean}"""
RIGHT_HOT = {
    "each": "(top_k - hot_share) / (experts - 1)",
    "busiest": "max(hot_share + (per - 1) * each, per * each)",
    "mean": "(top_k / devices)",
}


def hot(**changed: str) -> str:
    return HOT.format(**RIGHT_HOT | changed)


SHARE = """beside = {beside}
share = (slowdown * {mean} - {fixed}) / (1 - beside)
return {result}"""
RIGHT_SHARE = {
    "beside": "(experts // devices - 1) / (experts - 1)",
    "mean": "top_k / devices",
    "fixed": "beside * top_k",
    "result": "share if share <= 1 + 1e-12 else math.inf",
}


def share(**changed: str) -> str:
    return SHARE.format(**RIGHT_SHARE | changed)


KEPT = """tokens, top_k = chosen.shape
capacity = {capacity}
kept, taken = np.zeros(chosen.shape, bool), np.zeros(experts, int)
for {order}:
    e = chosen[t, j]
    kept[t, j] = taken[e] {below} capacity
    taken[e] += {counted}
return capacity, {result}"""
RIGHT_KEPT = {
    "capacity": "math.ceil(factor * tokens * top_k / experts)",
    "order": "j, t in np.ndindex(top_k, tokens)",
    "below": "<",
    "counted": "kept[t, j]",
    "result": "kept",
}


def kept(**changed: str) -> str:
    return KEPT.format(**RIGHT_KEPT | changed)


LOSS = """tokens, experts = len(x), router.shape[1]
logits = x @ router
p = np.exp(logits - logits.max(1, keepdims=True))
p = p / p.sum(1, keepdims=True)
f = {share}
g = {scale} * p * ({pull})
return {loss}, {gradient}"""
RIGHT_LOSS = {
    "share": "np.bincount(chosen.reshape(-1), minlength=experts) / chosen.size",
    "scale": "experts / tokens",
    "pull": "f - (p @ f)[:, None]",
    "loss": "experts * (f @ p.mean(0))",
    "gradient": "x.T @ g",
}


def loss(**changed: str) -> str:
    return LOSS.format(**RIGHT_LOSS | changed)


BIAS = """bias, seen = np.zeros(scores.shape[1]), []
for _ in range(rounds):
    chosen = np.argsort(-({wanted}), axis=1, kind="stable")[:, :top_k]
    loads = np.bincount(chosen.reshape(-1), minlength=len(bias))
    seen.append(loads)
    bias = {moved}
return {result}"""
RIGHT_BIAS = {
    "wanted": "scores + bias",
    "moved": "bias + rate * np.sign(loads.mean() - loads)",
    "result": "bias, np.array(seen)",
}


def bias(**changed: str) -> str:
    return BIAS.format(**RIGHT_BIAS | changed)


PLACE = """slots = len(loads) // devices
held, count, device_of = [0.0] * devices, [0] * devices, np.zeros(len(loads), int)
for e in {order}:
    free = [d for d in range(devices) if {room}]
    d = min(free, key=lambda d: {key})
    held[d] += loads[e]
    count[d] += 1
    device_of[e] = d
return device_of"""
RIGHT_PLACE = {
    "order": "np.argsort(-loads, kind='stable')",
    "room": "count[d] < slots",
    "key": "(held[d], d)",
}


def place(**changed: str) -> str:
    return PLACE.format(**RIGHT_PLACE | changed)


COPIES = """copies = np.ones(len(loads), int)
for _ in range(spare):
    share = {share}
    copies[share.argmax()] += 1
return {result}"""
RIGHT_COPIES = {
    "share": "np.where(copies < devices, loads / copies, -1.0)",
    "result": "copies, (loads / copies).max()",
}


def copies(**changed: str) -> str:
    return COPIES.format(**RIGHT_COPIES | changed)


TABLE = {
    "count_loads": {
        "experts alone": ("the loads of the devices are missing: return two arrays", count(result="loads")),
        "first choices alone": (
            "only the first choice of each token is counted: every entry of chosen is a token for an expert",
            count(picks="chosen[:, 0]"),
        ),
        "too short": (
            "an expert that nobody chose has a load too, 0: tell np.bincount how many experts there are",
            "loads = np.bincount(chosen.reshape(-1))\nreturn loads, np.bincount(device_of[: len(loads)], loads, devices)",
        ),
        "one expert a device": (
            "held[device_of] += loads adds one expert of each device alone: np.add.at, or np.bincount with weights, adds all",
            "loads = np.bincount(chosen.reshape(-1), minlength=len(device_of))\nheld = np.zeros(devices)\nheld[device_of] += loads\nreturn loads, held",
        ),
        "experts counted": (
            "this is how many experts a device holds: weigh each with its tokens",
            count(result="loads, np.bincount(device_of, minlength=devices)"),
        ),
        "as many devices as hold something": (
            "a device without an expert has a load too, 0: say how many devices there are",
            count(result="loads, np.bincount(device_of, loads)"),
        ),
        "neighbours": (
            "device_of says where each expert lies: neighbours need not share a device",
            count(result="loads, loads.reshape(devices, -1).sum(1)"),
        ),
        "tokens once": (
            "a token with two experts on a device is two rows of work there, not one",
            count(result="loads, np.array([(device_of[chosen] == d).any(1).sum() for d in range(devices)])"),
        ),
    },
    "layer_time": {
        "mean": (
            "this is the time of even loads: all wait for the busiest device",
            time(seconds="held.mean() * row_s + exchange_s"),
        ),
        "one after another": (
            "devices work side by side: the longest counts, not the sum",
            time(seconds="held.sum() * row_s + exchange_s"),
        ),
        "no exchange": ("the exchange takes its time too", time(seconds="held.max() * row_s")),
        "busiest expert": (
            "an expert waits for nobody, devices do: sum the loads of each device before you look for the largest",
            "held = np.bincount(device_of, loads, devices)\nreturn loads.max() / loads.mean(), loads.max() * row_s + exchange_s, 1 - loads.mean() / loads.max()",
        ),
        "over the least": (
            "imbalance is the busiest over the mean: a device without a token would make it infinite here",
            time(uneven="held.max() / max(held.min(), 1e-30)"),
        ),
        "upside down": ("the busiest stands above the line", time(uneven="held.mean() / held.max()")),
        "of the busiest": (
            "this is the share that is worked: waiting is the rest",
            time(waiting="held.mean() / held.max()"),
        ),
        "of the idlest": (
            "this is how long the idlest device waits: the share is of all devices' time, 1 - mean / busiest",
            time(waiting="1 - held.min() / held.max()"),
        ),
        "of the whole layer": (
            "the share is of the time with the experts: the exchange is no part of it",
            time(waiting="1 - (held.mean() * row_s + exchange_s) / (held.max() * row_s + exchange_s)"),
        ),
    },
    "hot_slowdown": {
        "alone on its device": (
            "the hot expert shares its device with others, whose tokens count too",
            hot(busiest="max(hot_share, per * each)"),
        ),
        "one too many": (
            "of the experts on its device one is the hot one itself: experts // devices - 1 lie beside it",
            hot(busiest="max(hot_share + per * each, per * each)"),
        ),
        "spread over all": (
            "the rest is spread over the other experts, of which there is one fewer",
            hot(each="(top_k - hot_share) / experts"),
        ),
        "one pick a token": (
            "a token has top_k picks: the others share top_k - hot_share",
            hot(each="(1 - hot_share) / (experts - 1)"),
        ),
        "over experts": (
            "even loads are top_k / devices a device: this divides by what an expert has",
            hot(mean="(top_k / experts)"),
        ),
        "always the hot one": (
            "an expert can also be colder than the rest: then another device is the busiest",
            hot(busiest="(hot_share + (per - 1) * each)"),
        ),
    },
    "least_hot_share": {
        "more than all": (
            "a share above 1 does not exist: more than all tokens cannot choose an expert",
            share(result="share"),
        ),
        "cut off": (
            "where even all tokens are not enough the answer is math.inf: a share of 1 does not reach it",
            share(result="min(1.0, share)"),
        ),
        "alone on its device": (
            "the hot expert shares its device with others, which carry a part of it",
            share(beside="0.0"),
        ),
        "spread over all": (
            "the rest is spread over experts - 1 others",
            share(beside="(experts // devices - 1) / experts"),
        ),
        "not one side": (
            "what lies beside the hot expert shrinks as its share grows: bring all of hot_share to one side",
            "beside = (experts // devices - 1) / (experts - 1)\nshare = slowdown * top_k / devices - beside * top_k\nreturn share if share <= 1 else math.inf",
        ),
        "all are not enough": (
            "a share of exactly 1 is enough: math.inf begins above it",
            share(result="share if share < 1 - 1e-12 else math.inf"),
        ),
        "from nothing": (
            "shares are counted from the even one up: no slowdown is what the even share gives",
            share(result="0.0 if slowdown <= 1 else share if share <= 1 + 1e-12 else math.inf"),
        ),
        "top-1": ("even loads are top_k / devices, not 1 / devices", share(mean="1 / devices")),
    },
    "capacity_kept": {
        "rounded down": (
            "the capacity is rounded up",
            kept(capacity="math.floor(factor * tokens * top_k / experts)"),
        ),
        "a part of a pick dropped": (
            "the capacity is rounded up once, at the end: a part of a pick may be what lifts it",
            kept(capacity="math.ceil(int(factor * tokens * top_k) / experts)"),
        ),
        "nearly whole": (
            "the capacity is rounded up however little it lies above a whole number",
            kept(capacity="math.ceil(round(factor * tokens * top_k / experts, 2))"),
        ),
        "without top-k": (
            "an even share is tokens * top_k / experts: each token is counted top_k times",
            kept(capacity="math.ceil(factor * tokens / experts)"),
        ),
        "token by token": (
            "all first choices come before any second one: the loop over choices is the outer one",
            kept(order="t, j in np.ndindex(tokens, top_k)"),
        ),
        "one more": ("an expert that has `capacity` tokens is full", kept(below="<=")),
        "dropped ones counted": (
            "a token that is dropped takes no room, yet it is counted here: add to the count only what is kept",
            "tokens, top_k = chosen.shape\ncapacity = math.ceil(factor * tokens * top_k / experts)\nloads = np.bincount(chosen.reshape(-1), minlength=experts)\nreturn capacity, loads[chosen] <= capacity",
        ),
        "dropped instead": ("True means kept: these are the ones that are dropped", kept(result="~kept")),
        "last come": (
            "the earlier token is kept: this begins at the last one",
            kept(order="j, t in ((j, t) for j in range(top_k) for t in reversed(range(tokens)))"),
        ),
    },
    "balance_gradient": {
        "loss alone": (
            "the gradient is missing: return the loss and the gradient",
            "tokens, experts = len(x), router.shape[1]\nlogits = x @ router\np = np.exp(logits - logits.max(1, keepdims=True))\np = p / p.sum(1, keepdims=True)\nf = np.bincount(chosen.reshape(-1), minlength=experts) / chosen.size\nreturn experts * (f @ p.mean(0))",
        ),
        "not scaled by experts": (
            "the loss is multiplied by the number of experts, so that it is 1 when all is even",
            loss(loss="f @ p.mean(0)", scale="1 / tokens"),
        ),
        "shares of tokens": (
            "a share of picks is a count over tokens * top_k, so that all shares add up to 1",
            loss(share="np.bincount(chosen.reshape(-1), minlength=experts) / len(x)"),
        ),
        "softmax as if straight": (
            "a softmax's gradient has a second term: every logit lowers all other probabilities",
            loss(pull="f[None, :]"),
        ),
        "by logits": (
            "this is the gradient by the logits: the router's is x.T times it",
            loss(gradient="g"),
        ),
        "summed": (
            "the mean over tokens divides the gradient by their number too",
            loss(scale="experts"),
        ),
        "uphill": (
            "the sign is turned: this would make the loss smaller where it should say how it grows",
            loss(gradient="-x.T @ g"),
        ),
    },
    "bias_rounds": {
        "wrong way": (
            "a busy expert's bias falls, an idle one's rises: this is the other way round",
            bias(moved="bias + rate * np.sign(loads - loads.mean())"),
        ),
        "in proportion": (
            "each bias moves by rate, however far its load is from the mean: take the sign",
            bias(moved="bias + rate * (loads.mean() - loads)"),
        ),
        "the mean falls": (
            "an expert with just the mean stays where it is: its bias moves here",
            bias(moved="bias + np.where(loads < loads.mean(), rate, -rate)"),
        ),
        "bias not used": (
            "the experts are chosen by score + bias: here the bias changes nothing",
            bias(wanted="scores"),
        ),
        "bias forgotten": (
            "a round goes on from the bias that the last one left",
            bias(moved="rate * np.sign(loads.mean() - loads)"),
        ),
        "the higher of equals": (
            "of equal sums the lower expert is chosen: a sort turned round takes the higher",
            bias().replace(
                'np.argsort(-(scores + bias), axis=1, kind="stable")',
                'np.argsort(scores + bias, axis=1, kind="stable")[:, ::-1]',
            ),
        ),
        "a sort that keeps no order": (
            'of equal sums the lower expert is chosen: np.argsort keeps equals in their order with kind="stable" alone',
            bias().replace(', kind="stable"', ""),
        ),
        "last loads": ("the loads of every round are asked for, a row each", bias(result="bias, loads")),
        "scores weighted": (
            "the bias is added to the score, so that it shifts all tokens alike",
            bias(wanted="scores * (1 + bias)"),
        ),
        "of the median": (
            "the mean decides who is busy, not the median",
            bias(moved="bias + rate * np.sign(np.median(loads) - loads)"),
        ),
    },
    "place_experts": {
        "by number": (
            "these are neighbours on one device, whatever their loads",
            "return np.arange(len(loads)) * devices // len(loads)",
        ),
        "dealt": (
            "these are experts dealt like cards, whatever their loads",
            "return np.arange(len(loads)) % devices",
        ),
        "lightest first": (
            "the lightest come first here, and the heavy ones find no gap: begin with the heaviest",
            place(order="np.argsort(loads, kind='stable')"),
        ),
        "heaviest dealt": (
            "the heaviest of each round meet on one device: give each to the device with the fewest tokens so far",
            place(key="(count[d], d)"),
        ),
        "to the busiest": (
            "devices fill up one after the other: each expert goes to the one with the fewest tokens so far, and these grow with every expert that it gets",
            place(key="(-held[d], d)"),
        ),
        "no slots": (
            "a device has len(loads) / devices slots: one that is full takes no more",
            place(room="True"),
        ),
    },
    "copies_of": {
        "hottest alone": (
            "after each copy look again: the next one goes to whoever has the most tokens a copy now",
            "copies = np.ones(len(loads), int)\ncopies[loads.argmax()] += min(spare, devices - 1)\nreturn copies, (loads / copies).max()",
        ),
        "the heaviest each": (
            "the heaviest get one each here: a very hot expert may need several before the next gets any",
            "copies = np.ones(len(loads), int)\ncopies[np.argsort(-loads, kind='stable')[:spare]] += 1\nreturn copies, (loads / copies).max()",
        ),
        "a copy lost": (
            "a copy that an expert can't have, since each device has one, goes to the next: here it is lost",
            "copies = np.ones(len(loads), int)\nfor _ in range(spare):\n    e = (loads / copies).argmax()\n    copies[e] += copies[e] < devices\nreturn copies, (loads / copies).max()",
        ),
        "none without tokens": (
            "once all with tokens have a copy on every device, the others are next in line: no copy is lost",
            "copies = np.ones(len(loads), int)\nfor _ in range(spare):\n    share = np.where(copies < devices, loads / copies, 0.0)\n    copies[share.argmax()] += share.max() > 0\nreturn copies, (loads / copies).max()",
        ),
        "whole shares": (
            "a copy's share may be a fraction: 11 tokens of two copies are 5.5 each, and more than 5",
            copies(share="np.where(copies < devices, loads // copies, -1.0)"),
        ),
        "rounded shares": (
            "a copy's share may be a fraction: rounded, 4.5 and 4.33 look alike",
            copies(share="np.where(copies < devices, np.rint(loads / copies), -1.0)"),
        ),
        "zero when full": (
            "an expert with a copy on every device is out of the running, below one that has no tokens",
            copies(share="np.where(copies < devices, loads / copies, 0.0)"),
        ),
        "no limit": (
            "a second copy on the same device wins nothing: an expert has at most as many as there are devices",
            copies(share="loads / copies"),
        ),
        "never again": (
            "an expert's tokens are shared by all its copies: divide by how many it has",
            copies(share="np.where(copies < devices, loads, -1.0)"),
        ),
        "spare ones": (
            "every expert has one copy to begin with",
            copies(result="copies - 1, (loads / copies).max()"),
        ),
        "undivided": (
            "the busiest copy, not the busiest expert: divide by the copies",
            copies(result="copies, loads.max()"),
        ),
    },
}

CELLS = Cells(ENTRY, TABLE)
MADE = CELLS.made("expert_load_balance")
