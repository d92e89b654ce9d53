"""The rule language: text to a rule book, with everything that is wrong on the way.

- Text: `sources.py` (files and places), `blocks.py` (statements), `grammar.lark` and `grammar.py` (the parser),
  `modules.py` (a file's statements by kind).
- Names: `resolve.py` puts modules together, with `families.py`, `views.py`, `externs.py`, `pipelines.py`, and
  `changes.py` for what a file changes in others; `names.py` is what a name means at a place.
- Rules: `rules.py` reads a rule, `terms.py` its sides, `formulas.py` its guard, `builtins.py` lists the functions of
  guards, `types.py` checks types, `cases.py` reads `given`, `shadowing.py` finds rules that never fire.
- `syntax.py` is the tree that all this makes, `parser.py` the way in: `load_rules` and `analyse`.
- Findings: `diagnostics.py` (codes, the text), `output.py` (JSON, SARIF, GitHub), `codes.md` and `codes.py` (a page a code).
- Expressions: `expressions.py` reads one with its assumptions, `drafts.py` builds its graph.
- `formatting.py` is the standard layout.
"""
