"""Turn an answer into a Record: gather evidence, judge it, and write the report that a person reads."""
