"""Cuvette's Python driver runs code in any Python 3.9 or later, and needs nothing but its standard library.

A *zygote* imports what sessions need and forks one *keeper* per session; the keeper
owns the session's socket and its output pipes and forks the *worker*, which runs the code.
"""
