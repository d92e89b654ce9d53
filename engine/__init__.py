"""The engine: typed graph, exact semantics, facts, the rule language, rewriting, the linear form."""
