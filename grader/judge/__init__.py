"""How an answer becomes a Record: what is gathered, who judges it, what a person reads of it."""
