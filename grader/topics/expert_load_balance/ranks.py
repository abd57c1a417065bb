"""Dispatch and combine between ranks: every token travels once to each rank that has an expert for it, and once home."""

import numpy as np

from grader.questions import Mistake, Part, RanksQuestion, Together
from grader.questions.draws import between
from grader.topics.expert_load_balance import exchange
from kernels.expert_load_balance import reference

LESSON = "course/04_expert_load_balance"
HIDDEN_SIZE, INNER = 32, 8


# What one rank has.


def _chosen(rng, tokens, top_k, experts, hot=0.0, shunned=()):
    """Choices of each token, no expert twice; a share of `hot` of the tokens has expert 1 first; nobody wants the `shunned`."""
    number = np.arange(experts)
    wanted = 0.6 * (number % 3 == 0) - 9.0 * np.isin(number, shunned)
    order = np.argsort(rng.random((tokens, experts)) - wanted, axis=1)
    order[rng.random(tokens) < hot] = np.roll(np.arange(experts), -1)
    return order[:, :top_k]


def tokens_of(rng, each, experts, top_k, hot=0.0, shunned=()):
    """(x, chosen, weights) of ranks with so many tokens; weights add up to 1 for no token."""
    found = []
    for tokens in each:
        weights = rng.uniform(0.2, 1.0, (tokens, top_k))
        share = np.where(rng.random((tokens, 1)) < 0.5, rng.uniform(0.3, 0.8), rng.uniform(1.2, 2.0))
        weights = (share * weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
        x = rng.standard_normal((tokens, HIDDEN_SIZE)).astype(np.float32)
        found.append((x, _chosen(rng, tokens, top_k, experts, hot, shunned), weights))
    return found


def weights_of(rng, experts):
    """gate, up and down of all experts."""
    shapes = ((HIDDEN_SIZE, INNER), (HIDDEN_SIZE, INNER), (INNER, HIDDEN_SIZE))
    return [(rng.standard_normal((experts, *s)) * s[0] ** -0.5).astype(np.float32) for s in shapes]


SHAPES = {  # kind -> (tokens of each rank, experts a rank, choices a token, share of tokens with the hot expert)
    "four ranks": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 2, 0.0),
    "three experts a token": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 3, 0.0),
    "six of sixteen experts a token": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 4, 6, 0.0),
    "a hot expert": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 2, 2, 0.8),
    "two ranks": lambda rng: ([between(rng, 5, 12) for _ in range(2)], 3, 2, 0.0),
    "a rank without tokens": lambda rng: ([between(rng, 3, 9), 0, between(rng, 3, 9), 5], 2, 2, 0.0),
    "a rank with nothing to do": lambda rng: ([between(rng, 3, 9), 0, between(rng, 3, 9), 5], 2, 2, 0.0),
    "all tokens to one rank": lambda rng: ([4, 3, between(rng, 2, 6), 5], 2, 2, 1.0),
    "nobody has a token": lambda rng: ([0, 0, 0], 2, 2, 0.0),
}
IDLE = {"a rank with nothing to do": 1}  # nobody wants its experts, and it has no token
PUBLIC = ("four ranks", "six of sixteen experts a token", "a rank without tokens")
HIDDEN = (*SHAPES, "four ranks")


def _tokens(rng, kind):
    """What the ranks have, and how many experts each."""
    each, per, top_k, hot = SHAPES[kind](rng)
    shunned = np.arange(per) + per * IDLE[kind] if kind in IDLE else ()
    return tokens_of(rng, each, len(each) * per, top_k, hot, shunned), per


def _dispatched(rng, kind):
    found, per = _tokens(rng, kind)
    return Together(tuple((x, chosen, len(found) * per) for x, chosen, _ in found), kind)


def _layered(rng, kind):
    tokens, per = _tokens(rng, kind)
    experts = weights_of(rng, len(tokens) * per)
    found = [(*one, *(w[rank * per : (rank + 1) * per] for w in experts)) for rank, one in enumerate(tokens)]
    return Together(tuple(found), kind)


# What every rank returns, by one process that has it all.


def dispatched(each, rank_of=None):
    per, found = each[0][2] // len(each), []
    lies_on = rank_of or (lambda experts: experts // per)
    for rank in range(len(each)):
        here = [(lies_on(chosen) == rank).any(axis=1) for _, chosen, _ in each]
        found.append(
            tuple(np.concatenate([given[i][h] for given, h in zip(each, here, strict=True)]) for i in (0, 1))
        )
    return found


def layer(each, weights=lambda w: w, chosen=lambda c, experts: c, only=None):
    """The topic's reference on each rank's tokens, with all experts at hand. What mistakes change stands in arguments."""
    gate, up, down = (np.concatenate([given[i] for given in each]) for i in (3, 4, 5))
    found = []
    for rank, (x, picks, w, *_) in enumerate(each):
        kept = None if only is None else only(picks // len(each[0][3]), rank)
        moved = chosen(picks, len(gate))
        found.append(reference.moe_of_experts(x, moved, weights(w), gate, up, down, kept))
    return found


# What goes wrong.


def without_weights(layer) -> Mistake:
    """Of any layer that takes what it does with the weights."""
    return Mistake(
        "no weights",
        "the weights are missing: each expert's result counts by its token's weight",
        wrong=lambda each: layer(each, weights=np.ones_like),
    )


def made_to_add_up(layer) -> Mistake:
    return Mistake(
        "weights made to add up to 1",
        "weights are taken as they are: those of a softmax over all experts add up to less than 1",
        wrong=lambda each: layer(each, weights=lambda w: w / w.sum(axis=1, keepdims=True)),
    )


def _as_sent(each):
    """A row for each choice: tokens with two experts on a rank come twice."""
    per, found = each[0][2] // len(each), []
    for rank in range(len(each)):
        parts = [np.repeat(np.arange(len(c)), (c // per == rank).sum(axis=1)) for _, c, _ in each]
        found.append(
            tuple(np.concatenate([given[i][p] for given, p in zip(each, parts, strict=True)]) for i in (0, 1))
        )
    return found


def _without_own(each):
    per, found = each[0][2] // len(each), []
    for rank in range(len(each)):
        here = [(c // per == rank).any(axis=1) & (sender != rank) for sender, (_, c, _) in enumerate(each)]
        found.append(
            tuple(np.concatenate([given[i][h] for given, h in zip(each, here, strict=True)]) for i in (0, 1))
        )
    return found


def _first_choice(each):
    return dispatched([(x, np.repeat(c[:, :1], c.shape[1], axis=1), e) for x, c, e in each])


def _first_rows(each):
    """Only tokens whose first choice is here, with all of their choices."""
    per = each[0][2] // len(each)
    return [
        tuple(np.concatenate([given[i][given[1][:, 0] // per == rank] for given in each]) for i in (0, 1))
        for rank in range(len(each))
    ]


def _other_ranks(each):
    """As if expert e lay on rank e % ranks."""
    return dispatched(each, lambda experts: experts % len(each))


def _by_token(each):
    """Every sender's rows one token after another, and cut as if they lay one rank after another."""
    per, ranks, found = each[0][2] // len(each), len(each), [([], []) for _ in each]
    for x, chosen, _ in each:
        goes = exchange.to_ranks(chosen, per, ranks)
        token = np.nonzero(goes.T)[0]
        for rank, rows in enumerate(np.split(token, np.cumsum(goes.sum(axis=1))[:-1])):
            for out, given in zip(found[rank], (x, chosen), strict=True):
                out.append(given[rows])
    return [tuple(map(np.concatenate, one)) for one in found]


def _own_numbers(each):
    """Experts as the receiver counts them, and those of other ranks as -1."""
    per, found = each[0][2] // len(each), []
    for rank, (rows, picks) in enumerate(dispatched(each)):
        found.append((rows, np.where(picks // per == rank, picks - rank * per, -1)))
    return found


def _dispatch_per(each) -> int:
    return each[0][2] // len(each)


def _most_of_dispatch(each) -> np.ndarray:
    row, picks = exchange.row_bytes(each)
    table = exchange.between(each, _dispatch_per(each))
    return table.sum(axis=1) * (row + picks) + exchange.counts(len(each))


def _dispatch_habit(table):
    def spends(each):
        row, picks = exchange.row_bytes(each)
        return table(each, _dispatch_per(each)).sum(axis=1) * (row + picks)

    return spends


def _from_whom(each, rank, index) -> str:
    """Where a row of dispatch comes from."""
    per, row = each[0][2] // len(each), index[0]
    for sender, (_, chosen, _) in enumerate(each):
        tokens = np.flatnonzero((chosen // per == rank).any(axis=1))
        if row < len(tokens):
            token = int(tokens[row])
            return f"row {index[0]} on rank {rank} is token {token} of rank {sender}, whose experts are {chosen[token].tolist()}"
        row -= len(tokens)
    return ""


def _whose_experts(each, rank, index) -> str:
    """Which ranks the wrong token depends on."""
    token, per = index[0], len(each[0][3])
    experts = each[rank][1][token]
    return f"token {token} of rank {rank} has the experts {experts.tolist()}, which lie on ranks {(experts // per).tolist()}"


def _dispatch_in_float64(each) -> np.ndarray:
    x, chosen = each[0][:2]
    return exchange.between(each, _dispatch_per(each)).sum(axis=1) * 8 * (x.shape[1] + chosen.shape[1])


WIDER = "float32 beside int64 in one array makes float64 of both, twice as wide: bring all to one type of four bytes, or send them apart"
PAD = "rows are padded to the fullest: the counts say how many there are, so send these and no more"
ALL = "every token goes to every rank: send it to those that have one of its experts"

DISPATCH = RanksQuestion(
    id="expert_load_balance.dispatch_tokens",
    notebook="ranks",
    asks="dispatch_tokens(comm, x, chosen, experts): on every rank, the rows of all tokens of all ranks that chose one of its experts, by sender, then by their number there, each once; and the rows of chosen that belong to them. Rank r has experts r * per to (r + 1) * per - 1, per = experts // comm.ranks",
    entry="dispatch_tokens",
    parts=(
        Part(
            "values",
            4,
            "ranks",
            asks="{public} and hidden ones, on up to four ranks: every rank has the rows it should, in their order",
        ),
        Part(
            "bytes",
            3,
            "bytes sent",
            asks="each row and its choices cross once to each other rank that needs them: no rank sends more",
        ),
        Part("exchanges", 1, "exchanges", asks="at most three exchanges"),
    ),
    reference=dispatched,
    public=tuple(_dispatched(np.random.default_rng(40 + i), kind) for i, kind in enumerate(PUBLIC)),
    hidden=lambda rng: [_dispatched(rng, kind) for kind in HIDDEN],
    most_bytes=_most_of_dispatch,
    model="for each token and each rank that has one of its experts, a row of x and a row of chosen; 64 bytes of counts",
    most_exchanges=3,
    habits={
        "a row a choice": (
            "a row travels for each choice: a token with two experts on a rank is needed there once",
            _dispatch_habit(exchange.picks_between),
        ),
        "padded": (PAD, _dispatch_habit(lambda each, per: exchange.padded(exchange.between(each, per)))),
        "to everybody": (ALL, _dispatch_habit(lambda each, per: exchange.to_everybody(each))),
        "in float64": (WIDER, _dispatch_in_float64),
    },
    whence=_from_whom,
    where=f'{LESSON}/b_exchange.ipynb, "There and back, line by line"',
    hints=(
        "Before anything is sent: which of your tokens does rank 2 need, and how many are they? Every rank can say this of its own tokens.",
        "goes = (chosen // per == rank).any(axis=1) marks what a rank needs. Put these tokens one rank after another, send how many they are with exchange_counts, and use what comes back as `receive`.",
        "token = np.concatenate([np.flatnonzero(g) for g in goes]); send = np.array([g.sum() for g in goes]); receive = comm.exchange_counts(send); comm.send_rows(x[token], send, receive), and the same for chosen[token]",
    ),
    mistakes=(
        Mistake(
            "a row a choice",
            "a token with two experts on a rank comes there twice: once is enough, its row of chosen says both",
            wrong=_as_sent,
        ),
        Mistake(
            "own ones left out",
            "a rank's own tokens for its own experts belong to its rows too: send_rows hands them over without a wire",
            wrong=_without_own,
        ),
        Mistake(
            "first choices alone",
            "only the first choice decides where a token goes: it is needed wherever one of its experts is",
            wrong=_first_rows,
        ),
        Mistake(
            "to the rank of that number",
            "expert e lies on rank e // per, neighbours together: these are the tokens of the experts with e % comm.ranks",
            wrong=_other_ranks,
        ),
        Mistake(
            "one token after another",
            "the rows lie one token after another when they are sent: all that go to rank 0 must come first, then those to rank 1",
            wrong=_by_token,
        ),
        Mistake(
            "other numbers",
            "the experts are counted from 0 on each rank here: hand on the rows of chosen as they are",
            wrong=_own_numbers,
        ),
    ),
)


def _layer_per(each) -> int:
    return len(each[0][3])


def _most_of_layer(each) -> np.ndarray:
    (row, picks), weights = exchange.row_bytes(each), each[0][2].shape[1] * each[0][2].itemsize
    table = exchange.between(each, _layer_per(each))
    return exchange.there_and_back(table, row + picks + weights, row) + exchange.counts(len(each))


def _layer_habit(there, back=None, choice=False, wide=1):
    """`there` and `back` count rows; `choice`: with a row goes one number alone; `wide`: how many times as wide a result is."""

    def spends(each):
        (row, picks), per = exchange.row_bytes(each), _layer_per(each)
        weights = each[0][2].shape[1] * each[0][2].itemsize
        out = there(each, per).sum(axis=1) * (row + (8 if choice else picks + weights))
        return out + (back or there)(each, per).sum(axis=0) * row * wide

    return spends


def _layer_in_float64(each) -> np.ndarray:
    """Row, choices and weights in one array, and results in its type."""
    hidden, top_k = each[0][0].shape[1], each[0][1].shape[1]
    return exchange.there_and_back(
        exchange.between(each, _layer_per(each)), 8 * (hidden + 2 * top_k), 8 * hidden
    )


LAYER = RanksQuestion(
    id="expert_load_balance.expert_layer",
    notebook="ranks",
    asks="expert_layer(comm, x, chosen, weights, gate, up, down): the layer's result for this rank's tokens, (tokens, hidden): the sum over each token's experts of its weight times what that expert makes of it. gate, up and down are those of this rank's experts alone, len(gate) of them",
    entry="expert_layer",
    parts=(
        Part(
            "values",
            5,
            "ranks",
            asks="{public} and hidden ones, on up to four ranks: every token's result is what one process with all experts computes",
        ),
        Part(
            "bytes",
            4,
            "bytes sent",
            asks="a token crosses once to each other rank that needs it, and one result row comes back: no rank sends more",
        ),
        Part("exchanges", 1, "exchanges", asks="at most five exchanges"),
    ),
    reference=layer,
    rtol=1e-5,
    atol=1e-5,
    public=tuple(_layered(np.random.default_rng(50 + i), kind) for i, kind in enumerate(PUBLIC)),
    hidden=lambda rng: [_layered(rng, kind) for kind in HIDDEN],
    most_bytes=_most_of_layer,
    model="for each token and each rank that has one of its experts, a row of x, of chosen and of weights, and one result row for each that came; 64 bytes of counts",
    most_exchanges=5,
    habits={
        "a row a choice": (
            "a row travels for each choice, there and back: a token goes once to a rank, and one row, already summed, comes home",
            _layer_habit(exchange.picks_between, choice=True),
        ),
        "a result a choice": (
            "a result comes home for each choice: weigh and sum on the rank of the experts, so that one row comes back",
            _layer_habit(exchange.between, exchange.picks_between),
        ),
        "padded": (PAD, _layer_habit(lambda each, per: exchange.padded(exchange.between(each, per)))),
        "to everybody": (ALL, _layer_habit(lambda each, per: exchange.to_everybody(each))),
        "in float64": (WIDER, _layer_in_float64),
        "twice as wide": (
            "the results are float64, twice as wide as the rows that came: .astype(x.dtype) before they travel",
            _layer_habit(exchange.between, wide=2),
        ),
    },
    whence=_whose_experts,
    where=f'{LESSON}/b_exchange.ipynb, "There and back, line by line"',
    hints=(
        "Your dispatch brings rows and choices to their experts. What else must a rank know to hand back one row for each that came?",
        "Send weights[token] too. On the expert's side add weight times result into one array, a row for each that came; send it back with send and receive exchanged, and add it to the tokens that you sent, in the same order.",
        "for e in range(per): r, j = np.nonzero(picks == first + e); out[r] += shares[r, j, None] * expert(rows[r], gate[e], up[e], down[e]); back = comm.send_rows(out, receive, send); np.add.at(y, token, back)",
    ),
    mistakes=(
        without_weights(layer),
        made_to_add_up(layer),
        Mistake(
            "own experts alone",
            "only experts on the token's own rank are in the sum: the results of the others have to come home",
            wrong=lambda each: layer(each, only=lambda ranks, rank: ranks == rank),
        ),
        Mistake(
            "others alone",
            "a token's experts on its own rank are not in the sum: a rank sends to itself as well, which crosses nothing",
            wrong=lambda each: layer(each, only=lambda ranks, rank: ranks != rank),
        ),
        Mistake(
            "first choices alone",
            "only the first choice of each token is in the sum",
            wrong=lambda each: layer(
                each, only=lambda ranks, rank: np.arange(ranks.shape[1]) + 0 * ranks == 0
            ),
        ),
        Mistake(
            "the last result wins",
            "of each token the results of one rank are kept, the last that has any: add each row that comes home to what is there, np.add.at(y, token, back)",
            wrong=lambda each: layer(
                each, only=lambda ranks, rank: ranks == ranks.max(axis=1, keepdims=True)
            ),
        ),
        Mistake(
            "weights turned",
            "each result is weighed with the weight of another choice: chosen and weights belong together by column",
            wrong=lambda each: layer(each, weights=lambda w: w[:, ::-1]),
        ),
    ),
)

QUESTIONS = (DISPATCH, LAYER)
