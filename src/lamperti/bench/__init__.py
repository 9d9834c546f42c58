"""The benchmark: which problems, which methods, what is measured, and how it is kept and told."""
