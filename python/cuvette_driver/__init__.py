"""Cuvette's Python driver: standard library only, Python 3.9 and later.

A *zygote* imports what sessions need and forks one *keeper* per session; the keeper
owns the session's socket and its output pipes and forks the *worker*, which runs the code.
"""
