"""What the tests of actors share: jobs whose meshes are plugins that the build has made."""

import json
import os
import re

import harness
import recovery

PLUGINS = os.path.join(harness.BUILD, "tests", "process", "plugins")
UNUSABLE = os.path.join(harness.BUILD, "tests", "worker", "rank")


def plugin(name):
    path = os.path.join(PLUGINS, f"lib{name}.so")
    return path if os.path.exists(path) else os.path.join(UNUSABLE, f"lib{name}.so")


def actor(name, class_name, **keys):
    return {"plugin": plugin(name), "class": class_name, **keys}


class ActorTest(recovery.RecoveryTest):
    def example(self, name, **changes):
        """Path of a copy of configs/NAME.yaml that finds the plugins of this build; `changes`: what is written otherwise."""
        folder = os.path.join(harness.ROOT, "configs")
        with open(os.path.join(folder, f"{name}.yaml"), encoding="utf-8") as file:
            spec = file.read().replace("../build/", harness.BUILD + "/")
        for data in re.findall(r"data: (\S+?)}", spec):
            spec = spec.replace(f"data: {data}", f"data: {os.path.join(folder, data)}")
        for was, now in changes.items():
            self.assertIn(f"{was}:", spec)
            spec = re.sub(rf"\b{was}: \w+", f"{was}: {now}", spec)
        return self.spec(spec, f"{name}.yaml")

    def actor_job(self, actors, controller=None, hosts=2, gpus=2, mesh=None, **keys):
        """Path of a spec with a mesh `t` of hosts × gpus ranks that have these actors."""
        one = {"dims": {"host": hosts, "gpu": gpus}, "actors": actors, "stop": {"grace": "1s"}, **(mesh or {})}
        spec = {"version": 1, "job": "actors", "launch": {"local": {"hosts": hosts}}, "meshes": {"t": one}, **keys}
        if controller is not None:
            spec["controller"] = controller
        return self.spec(json.dumps(spec, indent=1), "actors.yaml")
