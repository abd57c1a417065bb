"""What may be shown where a hidden case fails: one of its kind from a seed that is no secret."""

SHOWN_SEED = 20_26
NOTHING_SHOWN = "what this kind of case changes, compared with the public ones"
