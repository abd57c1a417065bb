"""Replace autotuning, since nothing can be timed. The first configuration that compiles runs, or all do."""

from contextlib import contextmanager, suppress

from triton.compiler.errors import CompileTimeAssertionFailure

from .arrays import is_tensor
from .asked import asked
from .call import Tensors

CONFIGS: list[str] = []  # the configuration of the launch that is under way


def tuned(self, *args, **kwargs):
    """Replace Autotuner.run. If all configurations are requested, the others run before the first one, each
    from the memory that it finds."""
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    named, ruled_out = {**self.nargs, **kwargs}, None
    configs = list(self.prune_configs(kwargs))
    self.nargs = None

    def run(config):
        if config.pre_hook is not None:
            config.pre_hook({**named, **config.all_kwargs()})
        with told(config):
            return self.fn.run(*args, **kwargs, **config.all_kwargs())

    if asked("all_configs"):
        given = [(name, value) for name, value in named.items() if is_tensor(value)]
        for config in configs[1:]:
            kept = [(s.elements, s.elements.copy()) for s in Tensors(given, whole=True).stored]
            with suppress(CompileTimeAssertionFailure):
                run(config)
            for elements, before in kept:
                elements[...] = before
    for config in configs:
        try:
            found = run(config)
        except CompileTimeAssertionFailure as error:  # the kernel itself rules this configuration out
            ruled_out = ruled_out or error
        else:
            self.best_config = config
            return found
    raise ruled_out


@contextmanager
def told(config):
    """Names a configuration in what is found inside."""
    CONFIGS.append(str(config))
    try:
        yield
    finally:
        CONFIGS.pop()
