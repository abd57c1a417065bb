"""What a verdict, or one part of it, may be."""

PASS, FAIL, REFUSED, INCONCLUSIVE = "PASS", "FAIL", "REFUSED", "INCONCLUSIVE"
