"""Describe where samplers disagree, as data. Each difference is a switch, and each library a setting of the switches."""

from dataclasses import dataclass

from kernels import require


@dataclass(frozen=True)
class Rules:
    """Hold the switches. Defaults are the course's. `fused.py` follows the first three and refuses all later ones."""

    min_p_first: bool = False  # min-p before top-p's mass is taken, or as the last rule
    top_p_of: str = "kept"  # top-p is a share of what top-k kept, or of "all" tokens
    greedy_below: float = 0.0  # a temperature of at most this is greedy
    top_k_ties: str = "index"  # equal to the k-th: the lowest ids fill up to exactly k, or "value": all stay
    top_p_ties: str = "index"  # equal at the border: the lowest ids first, or "value": all stay or go
    logprobs: str = "processed"  # of penalised, masked, tempered logits, or of the "raw" ones

    def __post_init__(self):
        require.one_of(("kept", "all"), top_p_of=self.top_p_of)
        require.one_of(("index", "value"), top_k_ties=self.top_k_ties)
        require.one_of(("index", "value"), top_p_ties=self.top_p_ties)
        require.one_of(("processed", "raw"), logprobs=self.logprobs)
        require.not_negative(greedy_below=self.greedy_below)


READ = {
    "vllm": "0.20",
    "transformers": "5.23",
    "flashinfer": "0.6",
}  # whose sources the answers below were read from
OURS = Rules()
LIBRARIES = {
    "ours": OURS,
    "vllm": Rules(min_p_first=True, top_k_ties="value", logprobs="raw", greedy_below=1e-5),
    "transformers": Rules(top_k_ties="value"),
    "flashinfer": Rules(top_k_ties="value", top_p_ties="value"),
    "flashinfer joint": Rules(top_p_of="all", top_k_ties="value", top_p_ties="value"),
}


@dataclass(frozen=True)
class Difference:
    switch: str  # a field of Rules, or "" if ours offers no switch
    question: str
    answers: dict[str, str]


DIFFERENCES = (
    Difference(
        "min_p_first",
        "When does min-p act? It keeps a token by its ratio to the best one, so the order matters to top-p only.",
        {
            "vllm": "before top-k and top-p, whose shares are then of the survivors",
            "transformers": "after temperature, top-k and top-p",
            "flashinfer": "a filter of its own, min_p_sampling_from_probs, chained after the others in LogitsPipe",
        },
    ),
    Difference(
        "top_p_of",
        "Top-p of which mass?",
        {
            "vllm": "of what top-k left: the masked row goes through softmax again",
            "transformers": "of what top-k left",
            "flashinfer": "filter_apply_order: top_k_first as above, or joint, where both filters look at the full softmax",
        },
    ),
    Difference(
        "greedy_below",
        "Which temperature is greedy?",
        {
            "vllm": "below 1e-5",
            "transformers": "do_sample=False, and a temperature of 0 is refused",
            "flashinfer": "none: top_k = 1 does it",
        },
    ),
    Difference(
        "top_k_ties",
        "Several tokens equal the k-th: how many stay?",
        {
            "vllm": "all: only logits strictly below the k-th are masked",
            "transformers": "all: the same comparison",
            "flashinfer": "all: a token goes when k others are strictly above it",
        },
    ),
    Difference(
        "top_p_ties",
        "Equal tokens at the border of the nucleus?",
        {
            "vllm": "the order of an unstable sort decides",
            "transformers": "the order of an unstable sort decides",
            "flashinfer": "all stay or go: the mass strictly above decides",
        },
    ),
    Difference(
        "logprobs",
        "Log-probabilities of what?",
        {
            "vllm": "logprobs_mode, raw_logprobs by default: before any rule",
            "transformers": "scores after all rules, logits before any",
            "flashinfer": "not returned",
        },
    ),
    Difference(
        "",
        "Which penalties, over which tokens?",
        {
            "vllm": "repetition over prompt and output, then frequency and presence over the output",
            "transformers": "repetition over prompt and output, no frequency or presence penalty",
            "flashinfer": "none",
        },
    ),
    Difference(
        "",
        "How is a token drawn?",
        {
            "vllm": "argmax of p / exponential noise (Gumbel-max), with one generator a seeded request",
            "transformers": "torch.multinomial over the batch: a row's draw depends on its neighbours",
            "flashinfer": "inverse CDF in the order of ids with rejection, except sampling_from_logits, which is Gumbel-max",
        },
    ),
)
