"""Modules under the names by which programs of Monarch's import them, where no file of ours lies.

Thread: an import's.
"""

import sys
import types


def put(root, places):
    """`places`: name below the module `root`, which becomes a package, and what is found there."""
    sys.modules[root].__path__ = []
    for name, found in places.items():
        above = sys.modules[root]
        for part in name.split("."):
            full = above.__name__ + "." + part
            if full not in sys.modules:
                sys.modules[full] = types.ModuleType(full)
                sys.modules[full].__path__ = []
                setattr(above, part, sys.modules[full])
            above = sys.modules[full]
        vars(above).update(found)
        above.__all__ = sorted(found)
