"""Is a rule right for all values: both sides and the guard as formulas of an SMT solver (z3, the extra `verify`)."""
