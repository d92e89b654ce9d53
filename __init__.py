"""Rulewright: fast kernels from declarative rewrite rules."""
