"""The names that Triton's Python looks up in `triton._C.libtriton.ir`."""

from .arithmetic import Numbers
from .enumerations import (  # noqa: F401
    ATOMIC_OP,
    CACHE_MODIFIER,
    DESCRIPTOR_REDUCE_KIND,
    EVICTION_POLICY,
    INPUT_PRECISION,
    MEM_SEMANTIC,
    MEM_SYNC_SCOPE,
    PADDING_OPTION,
    PROPAGATE_NAN,
    ROUNDING_MODE,
    ScaleDotElemTypeTY,
)
from .kinds import attribute, bool_attr, function_type, integer_attr, location, make_attr, type, unit_attr  # noqa: F401
from .memory import Memory
from .nodes import (  # noqa: F401
    ConditionOp,
    ForOp,
    IfOp,
    InsertPoint,
    OpState,
    WhileOp,
    YieldOp,
    block,
    block_argument,
    context,
    function,
    op_result,
    operation,
    region,
    value,
)
from .nodes import module as untidied
from .placing import Placing
from .tensors import Tensors
from .text import text_of


class module(untidied):
    def str(self):
        return text_of(self)

    str_nodebug = __str__ = str


class builder(Placing, Numbers, Tensors, Memory):
    """Build a module as `triton._C.libtriton.ir.builder` does."""

    def create_module(self):
        return module()

    def __getattr__(self, name):
        if not name.startswith(("create_", "get_")):
            raise AttributeError(name)
        raise NotImplementedError(
            f"{name.removeprefix('create_')} must be a word of Triton's builder that works without its compiled library, "
            "got one that does not; a machine with Linux has that library"
        )


def load_dialects(_context):
    pass


class missing:
    """Stand in for names that only the compiled library has.
    Annotations may use them, and any other use raises a clear sentence."""

    def __init__(self, *_arguments, **_more):
        raise NotImplementedError(
            "compiling must have Triton's compiled library, which this machine lacks; only the front end runs here"
        )


op_builder = pass_manager = source_mgr_diag = parse_mlir_module = missing
