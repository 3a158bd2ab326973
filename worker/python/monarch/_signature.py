"""Whether arguments fit a function, known at the caller before anything is sent. The library that prints signatures is
imported only to say why they do not.

Thread: values.
"""

import types

_VARARGS, _VARKEYWORDS = 4, 8  # inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


class Signature:
    """Of a function whose first arguments, `skipped` of them, are not the caller's."""

    __slots__ = ("_function", "_skipped", "least", "most")

    def __init__(self, function, skipped):
        self._function, self._skipped = function, skipped
        self.least, self.most = 1, 0  # by positions alone nothing is known to fit
        if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
            return
        code, defaults = function.__code__, function.__defaults__ or ()
        if code.co_kwonlyargcount > len(function.__kwdefaults__ or ()):
            return
        self.least = max(0, code.co_argcount - len(defaults) - skipped)
        self.most = (1 << 30) if code.co_flags & _VARARGS else max(0, code.co_argcount - skipped)

    def check(self, args, kwargs):
        """TypeError where they do not fit."""
        if not kwargs and self.least <= len(args) <= self.most:
            return
        import inspect
        try:
            signature = inspect.signature(self._function)
        except ValueError:
            return  # of something that tells nothing
        signature.bind(*(None,) * self._skipped, *args, **kwargs)


def of_constructor(Class):
    """What a class is made with; None where it says nothing."""
    make = Class.__init__
    if make is object.__init__:
        make = _nothing
    return Signature(make, 1)


def _nothing(self):
    pass
