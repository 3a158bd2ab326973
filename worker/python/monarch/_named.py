"""Actors by their names: those that a job names, and controllers, of which everybody has the same one.

Thread: any.
"""

import os

from ._future import future
from ._mesh import ActorMesh, Procs, check_class, proc_mesh_of
from ._process import process
from ._signature import of_constructor
from ._views import dense


def actors(mesh, actor, Class=None, door=None):
    """The actor of that name in each rank of a mesh of the job: of a C++ plugin, or of Python. Arguments and results are plain
    values. In a rank it is its job; a program by hand has MONARCH_POST, or says `door`, which `monarch status --json` has.

    `Class`: of Python, where the program has it: its endpoints are known, arguments are checked and may be given by name, and
    more values travel (monarch._plain); else each attribute is an endpoint."""
    if door is not None:
        process.use_door(door)
    elif "MONARCH_POST" not in os.environ:
        raise RuntimeError("which job? A rank of it has MONARCH_POST in its environment; a program by hand says actors(..., door=PATH), the door "
                           "that `monarch status --json` has")
    found = process.caller().welcome.mesh(mesh)
    if found is None:
        known = ", ".join(one.name for one in process.caller().welcome.meshes)
        raise ValueError("the job has no mesh %s; it has %s" % (mesh, known))
    return ActorMesh(Procs(mesh, "", mesh, True), actor, Class, (found.labels, found.sizes, dense(found.sizes), 0))


def get_or_spawn_controller(name, Class, *args, **kwargs):
    """The one actor of that name, for everybody: made where the program runs, by who asks first."""
    check_class(Class)
    of_constructor(Class).check(args, kwargs)
    process.serving()
    home = proc_mesh_of(process.root)
    mesh = home._spawn(name, Class, args, kwargs, exact=True)
    made = mesh._made

    def of(call):
        try:
            made._result()
        except Exception as e:
            raise ValueError("controller %s could not be made: %s" % (name, e)) from e
        return mesh

    return future(made._on, of)
