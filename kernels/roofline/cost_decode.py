"""Put decoding and prefill on the roofline. Every weight is read once a step, whatever the batch."""

from dataclasses import dataclass

from kernels import require


def decode_intensity(
    batch: int, parameters: float, d_model: int, param_bytes: float = 2.0, element_bytes: float = 2.0
) -> float:
    """Return I(B) = 2PB / (P b_param + B d b_elem) in FLOP/byte, nearly linear in the batch."""
    require.count(batch=batch, d_model=d_model)
    require.positive(parameters=parameters, param_bytes=param_bytes, element_bytes=element_bytes)
    return 2 * parameters * batch / (parameters * param_bytes + batch * d_model * element_bytes)


def tokens_intensity(tokens: int, param_bytes: float = 2.0) -> float:
    """Return the intensity of prefill, counting the weights alone, as 2 FLOP a weight and token, over the bytes of
    the weight."""
    require.count(tokens=tokens)
    require.positive(param_bytes=param_bytes)
    return 2 * tokens / param_bytes


def batch_at_ridge(
    ridge: float, parameters: float, d_model: int, param_bytes: float = 2.0, element_bytes: float = 2.0
) -> float:
    """Return the batch at which decoding stops being limited by memory, infinite if activations prevent this."""
    require.count(d_model=d_model)
    require.positive(ridge=ridge, parameters=parameters, param_bytes=param_bytes, element_bytes=element_bytes)
    gain = 2 * parameters - ridge * d_model * element_bytes
    return ridge * parameters * param_bytes / gain if gain > 0 else float("inf")


def weight_bytes_per_device(parameters: float, param_bytes: float = 2.0, devices: int = 1) -> float:
    """Return the bytes of the equal slice of every weight that tensor parallelism gives each device."""
    require.positive(parameters=parameters, param_bytes=param_bytes)
    require.count(devices=devices)
    return parameters * param_bytes / devices


@dataclass(frozen=True)
class DecodeStep:
    """Hold one step of one device. All devices of a tensor-parallel group take it together."""

    flops: float
    bytes_moved: float
    memory_s: float
    compute_s: float
    overhead_s: float
    batch: int

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes_moved

    @property
    def time_s(self) -> float:
        return max(self.memory_s, self.compute_s) + self.overhead_s

    @property
    def tokens_s(self) -> float:
        """Return the tokens per second of the whole group. Its devices share one model, so they do not multiply."""
        return self.batch / self.time_s

    @property
    def compute_share(self) -> float:
        """Share of the arithmetic peak in use."""
        return self.compute_s / self.time_s

    @property
    def bound(self) -> str:
        return "memory" if self.memory_s > self.compute_s else "compute"


def decode_step(
    parameters: float,
    *,
    peak_flop_s: float,
    bandwidth_byte_s: float,
    devices: int = 1,
    batch: int = 1,
    param_bytes: float = 2.0,
    kv_bytes: float = 0.0,
    overhead_s: float = 0.0,
) -> DecodeStep:
    """Return the ideal decode step, with the weights (and `kv_bytes` of cache a device) once, 2 FLOP a weight and
    request."""
    require.positive(peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s)
    require.count(batch=batch)
    require.not_negative(kv_bytes=kv_bytes, overhead_s=overhead_s)
    moved = weight_bytes_per_device(parameters, param_bytes, devices) + kv_bytes
    flops = 2.0 * parameters / devices * batch
    return DecodeStep(flops, moved, moved / bandwidth_byte_s, flops / peak_flop_s, overhead_s, batch)
