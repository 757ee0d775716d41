"""The cases, one module a group of requirements."""
