"""``python -m retain`` is the command ``retain``."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="retain")
