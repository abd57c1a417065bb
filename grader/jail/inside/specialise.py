"""Decide what a launch freezes into its code: dtypes, constants, ones, and multiples of 16."""

from .bind import bind


def specialise(kernel, step: dict, values: dict) -> tuple[dict, dict, dict, list]:
    """Types, constants, divisibility and the names that remain arguments, as Triton specialises a launch."""
    types, constants, attributes, arguments = {}, {}, {}, []
    for position, (name, value) in enumerate(bind(kernel, step, values).items()):
        if value[0] == "constexpr":
            types[name], constants[(position,)] = "constexpr", value[1]
        elif value[0] == "pointer":
            types[name] = f"*{value[2]}" if value[2] != "bool" else "*i1"
            attributes[(position,)] = [["tt.divisibility", 16]]
            arguments.append(name)
        elif value[2] == 1 and value[1].startswith("i"):
            types[name], constants[(position,)] = "constexpr", 1
        else:
            types[name] = value[1]
            if value[1].startswith("i") and value[2] % 16 == 0:
                attributes[(position,)] = [["tt.divisibility", 16]]
            arguments.append(name)
    return types, constants, attributes, arguments
