"""A rank of a job that has Python actors.

    python3 -m monarch.rank                                     actors come as others spawn them
    python3 -m monarch.rank --actor NAME --file F --class C [--args JSON] …      these actors
    python3 -m monarch.rank --actor NAME --module M --class C [--args JSON] …

Options from one --actor to the next are of that actor. Args are a JSON object: the arguments of the constructor, by name.
It says READY once its actors are made. SIGTERM ends it: the present message ends, and each actor's __cleanup__.
"""

import json
import os
import signal
import socket
import sys

from . import _door as d
from . import _host, _own, _serve
from ._process import Where, place_of_environment, process

_USAGE = "usage: python3 -m monarch.rank [--actor NAME --file F|--module M --class C [--args JSON]]…"
_WRONG_FOR_EVER, _FAILED, _CUT_OFF = 2, 1, 71  # exit codes, as monarch-rank's


class _Wrong(Exception):
    code = _WRONG_FOR_EVER


class _Unmade(_Wrong):
    code = _FAILED


class Wanted:
    """An actor of the command line."""

    def __init__(self, name):
        self.name, self.file, self.module, self.class_name, self.args = name, None, None, None, "{}"

    def load(self):
        """(class, arguments)"""
        if self.class_name is None or (self.file is None) == (self.module is None):
            raise _Wrong("actor %s: it has a --class, and a --file or a --module" % self.name)
        module = self._load_file() if self.file is not None else self._load_module()
        found = module
        for part in self.class_name.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type):
            classes = sorted(name for name, one in vars(module).items() if isinstance(one, type) and one.__module__ == module.__name__)
            raise _Wrong("actor %s: %s has no class %s; it has %s" % (self.name, module.__file__ or module.__name__, self.class_name,
                                                                     ", ".join(classes) or "none"))
        return found, self._arguments()

    def _load_module(self):
        import importlib
        try:
            return importlib.import_module(self.module)
        except ImportError as e:
            raise self._missing(e, "module %s" % self.module) from None

    def _load_file(self):
        import importlib.util
        path = os.path.abspath(self.file)
        folder, name = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
        if folder not in sys.path:
            sys.path.insert(0, folder)
        if not os.path.isfile(path):
            raise _Wrong("actor %s: there is no file %s" % (self.name, path))
        has = sys.modules.get(name)
        if has is not None and getattr(has, "__file__", None) == path:
            return has
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as e:
            raise self._missing(e, path) from None
        return module

    def _missing(self, e, what):
        lacks = e.name or str(e)
        return _Wrong("actor %s: %s cannot be imported: %s has no module %s (%s)\n  sys.path: %s" % (self.name, what, sys.executable, lacks, e,
                                                                                                  ", ".join(sys.path)))

    def _arguments(self):
        try:
            found = json.loads(self.args)
        except ValueError as e:
            raise _Wrong("actor %s: args are no JSON: %s" % (self.name, e)) from None
        if not isinstance(found, dict):
            raise _Wrong("actor %s: args are a JSON object, by the names of the constructor's arguments" % self.name)
        return found


def wanted_of(words):
    """The actors of a command line."""
    found, names = [], {"--file": "file", "--module": "module", "--class": "class_name", "--args": "args"}
    words = list(words)
    while words:
        word = words.pop(0)
        word, is_joined, value = word.partition("=")
        if not word.startswith("--") or (word != "--actor" and word not in names):
            raise _Wrong("what is %s?\n%s" % (word, _USAGE))
        if not is_joined:
            if not words:
                raise _Wrong("%s takes a value\n%s" % (word, _USAGE))
            value = words.pop(0)
        if word == "--actor":
            if any(one.name == value for one in found):
                raise _Wrong("actor %s is there twice" % value)
            found.append(Wanted(value))
        elif not found:
            raise _Wrong("%s stands behind the --actor that it is of\n%s" % (word, _USAGE))
        else:
            setattr(found[-1], names[word], value)
    return found


def say_ready():
    """READY=1 to whoever started it: sd_notify(3)."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
        try:
            one.sendto(b"READY=1", "\0" + path[1:] if path.startswith("@") else path)
        except OSError as e:
            sys.stderr.write("monarch.rank: READY could not be said: %s\n" % e.strerror)


def _bind_this():
    words = os.environ.pop(_host.BIND, None)
    if words is None:
        return
    from . import _bind
    try:
        _bind.bind(words)
    except (OSError, ValueError) as e:
        raise _Wrong("proc_bind %s: %s" % (words, e)) from None


class Rank:
    def __init__(self, wanted):
        self._place = place_of_environment()
        if self._place is None:
            raise _Wrong("it is a rank of a job: MONARCH_POST, MONARCH_MESH, MONARCH_RANK and MONARCH_GENERATION are not in its environment")
        self._wanted, self._server = wanted, None
        self._is_ending = False

    def run(self):
        signal.signal(signal.SIGTERM, self._term)
        _bind_this()
        classes = [(one, *one.load()) for one in self._wanted]
        told = [_told(one.name, Class) for one, Class, _ in classes] + [_built_in()] if classes else _serve.ANY_ACTOR
        return self._serve(told, classes)

    def _serve(self, told, classes):
        place = self._place
        door = d.Door(os.environ["MONARCH_POST"], place, serves=True, actors=told, patience=30.0)
        self._server = server = _serve.Server(door, Where(place[0], place[1]), place, told)
        process.server = server
        if not classes:
            _own.in_rank = True
        else:
            process.root = server.where
        server.begin()
        for one, Class, arguments in classes:
            self._make(server, one, Class, arguments, place)
        say_ready()
        try:
            server.run()
        except _Term:
            pass
        except d.Refused as e:
            sys.stderr.write("monarch-rank: %s\n" % e)
            return _FAILED
        except d.Ended as e:
            sys.stderr.write("monarch-rank: no call reaches this rank any more: %s\n" % e)
            return _CUT_OFF
        server.cleanup()
        return 0

    def _make(self, server, one, Class, arguments, place):
        from ._views import Extent, Point
        mesh = server.door.welcome.mesh(place[0])
        extent = Extent(mesh.labels, mesh.sizes) if mesh is not None else Extent([], [])
        cell = server.add_cell(one.name, Class, Point(place[1] if mesh is not None else 0, extent))
        try:
            cell.construct((), arguments)
        except Exception as e:
            import traceback
            traceback.print_exc()
            sys.stderr.flush()
            raise _Unmade("%s/%d: actor %s: %s: %s: %s" % (place[0], place[1], one.name, one.class_name, type(e).__name__, e)) from None

    def _term(self, *_):
        if self._is_ending:
            return
        self._is_ending = True
        server = self._server
        if server is None:
            raise SystemExit(0)
        server.end_soon(_Term)


class _Term(BaseException):
    """SIGTERM, between two messages."""


def _built_in():
    from . import _builtin
    return [_serve.BUILT_IN, "monarch", [[name, "*", True] for name in _builtin.ENDPOINTS]]


def _told(name, Class):
    from ._cells import endpoints_of
    endpoints = [[one, "*", of._concurrent] for one, of in endpoints_of(Class).items()]
    return [name, Class.__qualname__, endpoints + [[_serve.READY, "*", True]]]


def main(words):
    try:
        return Rank(wanted_of(words)).run()
    except _Wrong as e:
        sys.stderr.write("monarch-rank: %s\n" % e)
        return e.code
    except d.Ended as e:
        sys.stderr.write("monarch-rank: %s\n" % e)
        return _FAILED


if __name__ == "__main__":
    # Under its own name, too: what others import of it is this.
    from monarch import rank
    sys.exit(rank.main(sys.argv[1:]))
