"""Plain values as MessagePack: what goes to actors that a job names, of C++ or of Python, where no code travels.

None, bool, int, float, str, bytes, list and dict are as everybody has them. What else Python has of plain values goes as ext
types of ours, to Python alone: tuples, sets, complex and large numbers, times, dataclasses, named tuples and enums by their
names, arrays, tensors and exceptions. Reading runs nothing of a program: a class is looked up where it is imported already,
and its fields are set.

To C++ tuples, named tuples and dataclasses are arrays of their fields, enums their numbers, arrays and tensors their bytes.

Thread: any.
"""

import struct
import sys

LARGE_BYTES = 16 << 10  # from which on bytes are a piece of their own, which nobody copies before they lie in a body
COMPLEX_FORM = struct.Struct(">dd")
DEPTH = 200  # of what is read
(TUPLE, SET, FROZENSET, COMPLEX, TIME, DATACLASS, NAMEDTUPLE, ENUM, ARRAY, TENSOR, TORCH, EXCEPTION, INTEGER, BYTEARRAY, SLICE,
 CALL) = range(1, 17)


class DoesNotTravel(TypeError):
    """A value that cannot be sent: where in what is sent, and what it is. Nothing has been sent."""

    def __init__(self, what, path=()):
        super().__init__(what)
        self.what, self.path = what, tuple(path)

    def __str__(self):
        return "%s: %s" % (", ".join(self.path), self.what) if self.path else self.what

    def within(self, place):
        self.path = (place,) + self.path
        return self


class Unreadable(ValueError):
    """A body that is none, or that names what is not here."""


class RemoteError(Exception):
    """Stands for an exception whose class does not travel: its name and its text."""

    def __init__(self, type_name, text):
        super().__init__(text)
        self.type_name = type_name


def described(value):
    """What a value is, in words."""
    kind = type(value)
    module = getattr(value, "__module__", None)
    if isinstance(value, type):
        return "the class %s of %s" % (value.__qualname__, module)
    if kind.__name__ in ("function", "builtin_function_or_method"):
        return "a %s of %s" % ("lambda" if getattr(value, "__name__", "") == "<lambda>" else "function", module or "builtins")
    if kind.__name__ == "method":
        return "a method of %s" % described(value.__self__)
    if kind.__name__ == "module":
        return "the module %s" % value.__name__
    if kind.__module__ == "builtins":
        return "%s %s" % ("an" if kind.__name__[0] in "aeiou" else "a", kind.__name__)
    return "an object of %s, a class of %s" % (kind.__qualname__, kind.__module__)


# ---- classes by name


def find_class(module, name):
    """A class that an imported module defines or has imported; None where there is none. Nothing is imported or called."""
    found = sys.modules.get(module)
    for part in name.split("."):
        if found is None:
            return None
        found = found.__dict__.get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else None


def class_name(kind):
    if kind.__module__ == "__main__" or find_class(kind.__module__, kind.__qualname__) is not kind:
        raise DoesNotTravel("an object of %s, a class of %s" % (kind.__qualname__, kind.__module__))
    return [kind.__module__, kind.__qualname__]
