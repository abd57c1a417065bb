"""Words that right answers of sampling fusion share."""

LOOP = "    for start in range(0, V, BLOCK):"
BETTER = "who = tl.where(better, offs, who)\n"
