"""The words of Triton that a kernel answer may use. Whatever is not here is refused, whichever way it is reached."""

TRITON = {"jit", "cdiv", "next_power_of_2", "language"}

TL = set(
    """
    abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor bfloat16 bitonic_merge broadcast broadcast_to cast cat cdiv ceil
    clamp constexpr cos cumprod cumsum debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf
    exp exp2 expand_dims fdiv flip float16 float32 float64 float8e4nv float8e5 floor fma full gather histogram
    int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log log2 make_block_ptr
    make_tensor_descriptor math max max_constancy max_contiguous maximum min minimum mul multiple_of num_programs
    permute philox pointer_type program_id PropagateNan rand rand4x randint randint4x randn randn4x random range
    ravel reduce reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn squeeze static_assert static_print
    static_range store store_tensor_descriptor sub sum swizzle2d tensor topk trans uint16 uint32 uint64 uint8
    uint_to_uniform_float umulhi unsqueeze view where xor_sum zeros zeros_like
    """.split()
)
TL_MATH = set(
    "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 max min rsqrt sin sqrt sqrt_rn umulhi".split()
)
TL_RANDOM = set("philox rand rand4x randint randint4x randn randn4x uint_to_uniform_float".split())
MODULES = {
    "tl": TL, "triton.language": TL, "triton": TRITON, "tl.math": TL_MATH, "triton.language.math": TL_MATH,
    "tl.random": TL_RANDOM, "triton.language.random": TL_RANDOM,
}  # fmt: skip

# of tensors, types and descriptors; of lists, dicts and strings that launch(p) may build
MEMBERS = set(
    """
    T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or
    atomic_xchg atomic_xor block_shape broadcast_to cast cdiv ceil cos cumprod cumsum dtype element_ty erf exp exp2
    expand_dims flip floor gather histogram is_bf16 is_floating is_fp16 is_fp32 is_fp8 is_int load log log2
    logical_and logical_or max min numel permute primitive_bitwidth ravel reduce reshape rsqrt scalar scatter shape
    sigmoid sin softmax sort split sqrt sqrt_rn store strides sum to trans type value view xor_sum
    append bit_length copy count endswith extend get index insert items join keys pop setdefault startswith update
    values
    """.split()
)
WHY_NOT = {
    "inline_asm_elementwise": "inline assembly", "map_elementwise": "Python for each element", "extra": "device libraries",
    "core": "Triton's internals", "semantic": "Triton's internals", "standard": "Triton's internals",
    "target_info": "the target", "handle": "the interpreter's own memory",
}  # fmt: skip
NOT_IN_A_KERNEL = {
    "isinstance",
    "str",
    "sorted",
    "enumerate",
    "zip",
    "dict",
}  # Python's, of which a GPU knows nothing
