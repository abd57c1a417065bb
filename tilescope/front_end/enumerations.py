"""Name the choices of Triton's front end, with the compiled library's numbers."""

from enum import IntEnum


def _enum(name: str, **members):
    return IntEnum(name, members, module=__name__)


ATOMIC_OP = _enum("ATOMIC_OP", AND=1, OR=2, XOR=3, ADD=4, FADD=5, MAX=6, MIN=7, UMAX=8, UMIN=9, XCHG=10)
CACHE_MODIFIER = _enum("CACHE_MODIFIER", NONE=1, CA=2, CG=3, WB=4, CS=5, WT=6, CV=7)
DESCRIPTOR_REDUCE_KIND = _enum(
    "DESCRIPTOR_REDUCE_KIND", ADD=1, MIN=2, MAX=3, INC=4, DEC=5, AND=6, OR=7, XOR=8
)
EVICTION_POLICY = _enum("EVICTION_POLICY", NORMAL=1, EVICT_FIRST=2, EVICT_LAST=3)
INPUT_PRECISION = _enum("INPUT_PRECISION", TF32=0, TF32x3=1, IEEE=2, BF16x3=3, BF16x6=4)
MEM_SEMANTIC = _enum("MEM_SEMANTIC", RELAXED=1, ACQUIRE=2, RELEASE=3, ACQUIRE_RELEASE=4)
MEM_SYNC_SCOPE = _enum("MEM_SYNC_SCOPE", GPU=1, CTA=2, SYSTEM=3)
PADDING_OPTION = _enum("PADDING_OPTION", PAD_ZERO=1, PAD_NAN=2)
PROPAGATE_NAN = _enum("PROPAGATE_NAN", NONE=0, ALL=0xFFFF)
ROUNDING_MODE = _enum("ROUNDING_MODE", RTZ=0, RTNE=1)
ScaleDotElemTypeTY = _enum("ScaleDotElemTypeTY", E4M3=0, E5M2=1, E2M3=2, E3M2=3, E2M1=4, BF16=5, FP16=6)
