"""Idle slots of a job: processes are claimed of them, and let go.

Thread: any.
"""

from . import _own, _wire
from ._future import All, future
from ._process import own_place, process

_TEXT_BYTES = 48 << 10  # of all texts of a claim
AGAIN = "_again"  # behind the name of an idle mesh: the one whose ranks are started again when they die, where the job has it
BIND = "MONARCH_BIND"  # to which processors and memory a rank binds itself, for monarch._bind
_BINDS = ("cpunodebind", "membind", "physcpubind", "cpus")


class BootstrapCommand:
    """How a process is started; of it the variables count, and the interpreter."""

    def __init__(self, program=None, arg0=None, args=(), env=None):
        self.program, self.arg0, self.args, self.env = program, arg0, list(args), dict(env or {})

    def with_env(self, env):
        return BootstrapCommand(self.program, self.arg0, self.args, {**self.env, **env})


class Claim:
    """Ranks of a mesh that this process has claimed."""

    def __init__(self, number, mesh, ranks):
        self.number, self.mesh, self.ranks = number, mesh, list(ranks)

    def is_run(self):
        return self.ranks == list(range(self.ranks[0], self.ranks[0] + len(self.ranks)))

    def let_go(self):
        """Its processes end; what is waited for."""
        return process.caller().wishes.let_go(self.number)


class Wish:
    """So many processes on each of these hosts; `hosts`: names, none of them: this host. `commands` has a BootstrapCommand, or
    None, for each process, and `binds` what each process of a host is bound to."""

    def __init__(self, mesh, hosts, count, name, dims, commands, python=None, binds=None):
        self.mesh, self.hosts, self.count, self.name, self.dims = mesh, list(hosts or ()), count, name, dims
        self.commands, self.python, self.binds = commands, python, binds

    def fields(self):
        """As monarch-post(7) has them. ValueError where a variable is none."""
        variables = [{} if one is None else _checked(one.env) for one in self.commands]
        for place, bind in enumerate(_texts_of(one) for one in self.binds or ()):
            for of in variables[place::self.count]:
                of[BIND] = bind
        pythons = {one.program for one in self.commands if one is not None and one.program} or {self.python}
        if len(pythons) > 1:
            raise ValueError("the processes of one spawn_procs() have one interpreter, not %s" % ", ".join(sorted(map(str, pythons))))
        python = pythons.pop()
        common = {name: value for name, value in (variables[0] if variables else {}).items() if all(one.get(name) == value for one in variables)}
        variables = [{name: value for name, value in one.items() if name not in common} for one in variables]
        fields = [
            self.mesh, self.hosts, self.count, self.name, [[label, size] for label, size in self.dims.items()],
            [python, "-m", "monarch.rank"] if python else [], "", common, variables if any(variables) else []
        ]
        size = len(_wire.pack(fields))
        if size > _TEXT_BYTES:
            raise ValueError("spawn_procs() of %d processes: their names and variables have %d bytes, and at most %d go with one claim" %
                             (len(self.commands), size, _TEXT_BYTES))
        return fields


def _checked(env):
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or "=" in name or "\0" in name + value:
            raise ValueError("a variable has a name and a text, not %r: %r" % (name, value))
    return dict(env)


def _texts_of(bind):
    """What a process is bound to, in words: those of Monarch, which are numactl's."""
    for name, value in bind.items():
        if name not in _BINDS or not isinstance(value, str):
            raise ValueError("proc_bind has %s, each with a text: not %r: %r" % (", ".join(_BINDS), name, value))
    return " ".join("%s=%s" % one for one in sorted(bind.items()))


def start_job(spec=None):
    """A job of one virtual host, or of that spec, which ends with this process."""
    from . import _tied
    return _tied.TiedJob(spec or _tied.spec_of(1, {}))


def idle_mesh():
    """The mesh of this process' job that processes are claimed of; "": the first one that has some on this host."""
    process.caller()
    if process.job is not None:
        return process.job.mesh
    mesh = own_place().mesh if _own.in_rank else ""
    return mesh[:-len(AGAIN)] if mesh.endswith(AGAIN) else mesh


def claim(wish, again=False):
    """Ranks of a mesh, started for this process: all or none. `again`: they are started again when they die."""
    caller = process.caller()
    fields = wish.fields()
    if again:
        has = caller.welcome.mesh(wish.mesh + AGAIN)
        fields[0] = has.name if has is not None else wish.mesh
    return Claim(*caller.wishes.claim(fields))


def end(procs):
    """Ends these processes, which are some of a claim; a future."""
    from ._mesh import built_in
    asked = built_in(procs, "end").call()
    return asked._on


def future_of_all(parts):
    """Done once they are."""
    return future(All(parts), _first_error)


def _first_error(all_):
    for one in all_.parts:
        if getattr(one, "error", ""):
            raise RuntimeError(one.error)
