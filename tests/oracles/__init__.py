"""Textbook answers in plain NumPy, written without the library's code and without its tricks."""
