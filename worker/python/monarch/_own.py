"""What only this program has, its own classes and functions, and who else has been given which.

A class or function of __main__ goes by value once: with cloudpickle, as it is at that moment. With it goes a key, by which
both sides name it from then on, and what it uses of __main__ gets keys, too. So a name that is defined again, in a notebook,
is another thing, and who has the older one keeps it. What a process has been given it also has under its name in its own
__main__. Lambdas and what is made within functions go by value each time.

A peer is whatever the caller names a process with. What it knows is forgotten where it is another process than before.

Thread: any.
"""

import itertools
import os
import pickle
import struct
import sys
import threading
import types

in_rank = False  # in a rank's __main__ there is nothing of a program's but what it is given
local = threading.local()  # .sender: of the pickle that this thread reads


class CloudpickleMissing(pickle.PicklingError):
    """A program's own class or function cannot go by value."""


class OtherCloudpickle(ImportError):
    """The two ends have different versions of it."""


class NotGiven(LookupError):
    """A key that this process does not know."""


class _Own:
    __slots__ = ("value", "key", "peers")

    def __init__(self, value, key):
        self.value, self.key, self.peers = value, key, set()


class _Known:
    def __init__(self):
        self._by_id, self._by_key = {}, {}  # each keeps its class or function, so that no other has its id
        self._numbers, self._token = itertools.count(1), None

    def of(self, value):
        return self._by_id.get(id(value))

    def with_key(self, key):
        return self._by_key.get(key)

    def enter(self, value, key=None):
        """It has a key now; the one that it had before, where it had one."""
        own = self._by_id.get(id(value))
        if own is None:
            if key is None:
                if self._token is None:
                    self._token = os.urandom(8)
                key = self._token + struct.pack("<I", next(self._numbers))
            own = self._by_id[id(value)] = _Own(value, key)
        # One class may come by two ways, with a key of each.
        self._by_key.setdefault(own.key if key is None else key, own)
        return own

    def give(self, owns, peers):
        """These processes have it: what dump() has put into `fresh`, or classes and functions."""
        for own in owns:
            (own if isinstance(own, _Own) else self.enter(own)).peers.update(peers)

    def knows(self, value, peer):
        own = self.of(value)
        return own is not None and peer in own.peers

    def forget(self, peers):
        """They are other processes now."""
        for own in list(self._by_key.values()):
            own.peers.difference_update(peers)

    def forked(self):
        """A child makes keys of its own."""
        self._token = None


known = _Known()
os.register_at_fork(after_in_child=known.forked)


def is_own(value):
    """Whether others cannot import it: a class or a function."""
    name, module = value.__qualname__, value.__module__
    if module == "__main__" or "<" in name:
        return True
    found = sys.modules.get(module)
    if found is None:
        return not _is_of_c(value)
    if "." not in name:
        return getattr(found, name, value) is not value and not _is_of_c(value)
    return False


def _is_of_c(value):
    # Types of the interpreter have names that lie nowhere (builtins.NoneType); pickle knows them.
    return isinstance(value, type) and not value.__flags__ & 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _has_name(value):
    return "<" not in value.__qualname__


def reach(value, found=None):
    """What of this program's own a class or function uses, itself first, by id."""
    found = {} if found is None else found
    value = getattr(value, "__func__", value)
    if not isinstance(value, (type, types.FunctionType)) or id(value) in found or not is_own(value):
        return found
    found[id(value)] = value
    for function in _functions_of(value):
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
            for name in code.co_names:
                reach(function.__globals__.get(name), found)
        for cell in function.__closure__ or ():
            try:
                reach(cell.cell_contents, found)
            except ValueError:
                pass  # it is filled later
    if isinstance(value, type):
        for base in value.__bases__:
            reach(base, found)
    return found


def _functions_of(value):
    if isinstance(value, types.FunctionType):
        return [value]
    found = []
    for one in list(vars(value).values()):
        for inner in (getattr(one, "_method", one), getattr(one, "fget", None), getattr(one, "fset", None)):
            inner = getattr(inner, "__func__", inner)
            if isinstance(inner, types.FunctionType):
                found.append(inner)
    return found


def install(value):
    """What came by value has its name in __main__, with what it uses."""
    main = sys.modules["__main__"]
    for one in reach(value).values():
        if _has_name(one) and one.__module__ == "__main__" and "." not in one.__qualname__:
            setattr(main, one.__qualname__, one)


# ---- by value and by key


def reduced(value, peers, fresh):
    """How a class or function of this program's own is pickled for them."""
    own = known.of(value)
    if own is not None and (peers is None or peers <= own.peers):
        return _named, (own.key,)
    if not _has_name(value):
        return by_value(value)
    cloudpickle = _cloudpickle(value)
    data = cloudpickle.dumps(value, 5)
    owns = [known.enter(one) for one in reach(value).values() if _has_name(one)]
    fresh += owns
    return _keep, (cloudpickle.__version__, [(one.value.__qualname__, one.key) for one in owns], data)


def by_value(value):
    cloudpickle = _cloudpickle(value)
    return _by_value, (cloudpickle.__version__, cloudpickle.dumps(value, 5))


def _named(key):
    own = known.with_key(key)
    if own is None:
        raise NotGiven("a class or function that this process has not been given: who sends it has given it to a process before this one")
    return own.value


def _keep(version, names, data):
    own = known.with_key(names[0][1])
    if own is None:
        value = _by_value(version, data)
        found = {}
        for one in reach(value).values():
            found.setdefault(one.__qualname__, one)
        found[names[0][0]] = value
        for name, key in names:
            if name in found:
                known.enter(found[name], key)
        if in_rank:
            install(value)
        own = known.with_key(names[0][1])
    sender = getattr(local, "sender", None)
    if sender is not None:
        for _, key in names:
            one = known.with_key(key)
            if one is not None and one.key == key:  # by another key the sender would not know it
                one.peers.add(sender)
    return own.value


def _by_value(version, data):
    cloudpickle = _cloudpickle(None)
    if cloudpickle.__version__ != version:
        raise OtherCloudpickle("a program's own class or function was sent with cloudpickle %s, and %s here has cloudpickle %s: both ends need the same" %
                               (version, sys.executable, cloudpickle.__version__), name="cloudpickle")
    return pickle.loads(data)


# ---- cloudpickle: the interpreter's own, else the one that lies beside this


def has_cloudpickle():
    try:
        return _cloudpickle(None) is not None
    except CloudpickleMissing:
        return False


def is_for_cloudpickle(value):
    """What it can pickle and pickle cannot: modules, cells, properties, views of dicts."""
    return type(value) in _cloudpickle(value).Pickler.dispatch_table and not isinstance(value, types.FunctionType)


_EMBEDDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_embedded")
_loaded = []


def _cloudpickle(value):
    if not _loaded:
        try:
            _loaded.append(_imported())
        except ImportError:
            raise CloudpickleMissing("%s is this program's alone, and %s has no cloudpickle to send it with" %
                                     (getattr(value, "__qualname__", "a class or function"), sys.executable)) from None
    return _loaded[0]


def _imported():
    try:
        import cloudpickle
    except ImportError:
        if not os.path.isfile(os.path.join(_EMBEDDED, "cloudpickle", "__init__.py")):
            raise  # the source tree has none
        sys.path.append(_EMBEDDED)
        try:
            import cloudpickle
        finally:
            sys.path.remove(_EMBEDDED)
    return cloudpickle
