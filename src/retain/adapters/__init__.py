"""retain in other programs: a module for each framework, which imports that framework alone.

Each is written to the framework's own extension point, and installed with an extra of its name.
"""
