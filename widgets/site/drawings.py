"""Draw a lesson's own drawing inside its page, where light-dark(as drawn, its dark partner) lets each colour follow
the theme."""

import re

COLOUR = re.compile(r'\b(fill|stroke|stop-color)="#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})"')
# Björn Ottosson's OKLab counts lightness as the eye does, so a mirrored lightness keeps the contrasts.
TO_CONE = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
FROM_LAB = (
    (1, 0.3963377774, 0.2158037573),
    (1, -0.1055613458, -0.0638541728),
    (1, -0.0894841775, -1.2914855480),
)
FROM_CONE = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
WHITE_BECOMES, BLACK_BECOMES = (
    0.24,
    1.17,
)  # lightness of the dark theme's card, where a dark drawing turns white


def _times(rows, vector) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in rows]


def dark(colour: str) -> str:
    """Return the same hue with its lightness mirrored, for a dark ground."""
    if len(colour) == 4:
        colour = "#" + "".join(2 * digit for digit in colour[1:])
    linear = [((v + 0.055) / 1.055) ** 2.4 if v > 0.04045 else v / 12.92 for v in _channels(colour)]
    lightness, a, b = _times(TO_LAB, [v ** (1 / 3) for v in _times(TO_CONE, linear)])
    mirrored = min(1.0, BLACK_BECOMES + (WHITE_BECOMES - BLACK_BECOMES) * lightness)
    back = _times(FROM_CONE, [v**3 for v in _times(FROM_LAB, (mirrored, a, b))])
    shown = (
        1.055 * v ** (1 / 2.4) - 0.055 if v > 0.0031308 else 12.92 * v
        for v in (min(1, max(0, v)) for v in back)
    )
    return "#" + "".join(f"{round(255 * v):02x}" for v in shown)


def _channels(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def inline(svg: str, uid: str) -> str:
    """Return the picture's own text for the page, with colours that follow, and ids that no other picture has."""
    body = svg[svg.index("<svg") :]
    body = COLOUR.sub(lambda m: f'{m[1]}="light-dark(#{m[2]}, {dark("#" + m[2])})"', body)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{uid}-\1"', body)
    body = re.sub(r'((?:url\(|href=")#)', rf"\g<1>{uid}-", body)
    return body.strip()
