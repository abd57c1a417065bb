"""Answers that have no record yet, judged once each: by this process, by several of this machine, or by many machines."""
