"""Python programs on a job of monarch: `from monarch.actor import Actor, endpoint, this_host`. See monarch-python(7)."""

from os import path as _path


def _tell_of_another():
    """torchmonarch has a package of this name. Installed into this very folder, its folder `actor` comes before our file."""
    folder = _path.dirname(__file__)
    if _path.exists(_path.join(folder, "actor", "__init__.py")):
        import warnings
        warnings.warn("torchmonarch and monarch are both installed in %s: monarch.actor is that of torchmonarch. "
                      "PYTHONPATH=$(monarch python) puts ours first" % folder, stacklevel=3)


_tell_of_another()
