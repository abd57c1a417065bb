"""Count the bytes of a chain of operations when each is its own kernel, and when they are one."""

from dataclasses import dataclass

from kernels import require


def tensor_bytes(rows: int, width: int, element_bytes: float = 2.0) -> float:
    require.count(rows=rows, width=width)
    require.positive(element_bytes=element_bytes)
    return rows * width * element_bytes


def gemm_weights_bytes(width: int, element_bytes: float = 2.0, layers: int = 1) -> float:
    """Return the bytes of the square matrix of the matmul at a chain's head, of all layers, read once, fused or not."""
    require.count(layers=layers)
    return tensor_bytes(width, width, element_bytes) * layers


@dataclass(frozen=True)
class ChainTraffic:
    """Hold a chain of same-shaped operations over one tensor, for all layers together."""

    operations: int
    layers: int
    one_tensor_bytes: float

    @property
    def intermediates(self) -> int:
        """Return the number of tensors that a layer writes only for the next operation to read."""
        return self.operations - 1

    @property
    def materialised_bytes(self) -> float:
        """Return the bytes of the intermediates of one layer."""
        return self.intermediates * self.one_tensor_bytes

    @property
    def intermediate_traffic_bytes(self) -> float:
        """Return the bytes of intermediates, each written and read again, over all layers. Fusing removes them."""
        return 2 * self.materialised_bytes * self.layers

    @property
    def unfused_bytes(self) -> float:
        return 2 * self.operations * self.one_tensor_bytes * self.layers

    @property
    def fused_bytes(self) -> float:
        """Return the bytes of one read and one write."""
        return 2 * self.one_tensor_bytes * self.layers

    @property
    def round_trips(self) -> tuple[int, int]:
        """Return the passes of a layer over memory, unfused and fused."""
        return 2 * self.operations, 2

    @property
    def ratio(self) -> float:
        return self.unfused_bytes / self.fused_bytes

    def ratio_with(self, weights_bytes: float) -> float:
        """Return the factor of bytes saved, with weights that are read either way."""
        require.not_negative(weights_bytes=weights_bytes)
        return (self.unfused_bytes + weights_bytes) / (self.fused_bytes + weights_bytes)

    def time_saved_s(self, bandwidth_byte_s: float) -> float:
        """Return the time saved at best, since fusing saves nothing that was hidden under arithmetic."""
        require.positive(bandwidth_byte_s=bandwidth_byte_s)
        return self.intermediate_traffic_bytes / bandwidth_byte_s


def chain_traffic(
    operations: int, rows: int, width: int, element_bytes: float = 2.0, layers: int = 1
) -> ChainTraffic:
    """Count a chain such as GEMM, GELU, LayerNorm (3 operations), or bias, GELU, dropout."""
    require.count(operations=operations, layers=layers)
    return ChainTraffic(operations, layers, tensor_bytes(rows, width, element_bytes))


def row_kernel_bytes(rows: int, width: int, element_bytes: float = 2.0, row_vectors: int = 2) -> float:
    """Return the bytes that LayerNorm(GELU(x)) must move: x once, y once, and its `row_vectors` (weight and bias) once."""
    require.whole(row_vectors=row_vectors)
    return 2 * tensor_bytes(rows, width, element_bytes) + row_vectors * width * element_bytes


def row_vector_bytes(rows: int, width: int, element_bytes: float = 4.0) -> float:
    """Return the bytes of a weight or a bias that every row's program requests again, caches or not."""
    return rows * width * element_bytes
