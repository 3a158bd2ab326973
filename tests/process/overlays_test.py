"""Specs put together on the command line: what runs is what --save and the job's own folder say, and `up` knows it again."""

import os

import harness
import jobs

SHOW = 'echo "$X $# $*"\n'


class Overlays(jobs.JobTest):
    def parts(self):
        base = self.program_job(["/bin/sh", "-c", jobs.MARK + SHOW, "sh"], hosts=2, slots=1, launch={"local": {"hosts": 7}})
        over = self.spec("meshes: {m: {env: {X: over}, dims: {slot: 2}}}\n", "over.yaml")
        return base, over

    def test_files_flags_and_arguments_make_one_spec(self):
        base, over = self.parts()
        saved = self.path("saved.yaml")
        done = self.monarch("run", base, "-f", over, "--set", "meshes.m.dims.host=1", "--launch", "local:3", "--save", saved,
                            "--no-prefix", "--", "a b", "$HOME", "", "--x")
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), ["over 4 a b $HOME  --x"] * 2)
        kept = self.read(self.job_file("spec.yaml"))
        self.assertIn("hosts: 3", kept)
        # In another folder than the spec's it says where ranks start, and is the same otherwise.
        self.assertIn(f"workdir: {self.path('work')}", self.read(saved))
        again = self.monarch("run", saved, "--no-prefix")
        self.assertEqual(again.status, 0, again)
        self.assertEqual(again.out, done.out)
        beside = self.path("work", "beside.yaml")
        self.assertEqual(self.monarch("plan", base, "-f", over, "--save", beside).status, 0)
        self.assertEqual(self.monarch("plan", beside).out, self.monarch("plan", base, "-f", over).out)
        self.assert_nothing_left()

    def test_a_spec_on_standard_input_runs_and_its_ranks_read_nothing_of_it(self):
        base = self.program_job(["/bin/sh", "-c", jobs.MARK + 'cat; echo "$X in $PWD"'], hosts=1, slots=2)
        over = self.spec("meshes: {m: {env: {X: over}}}\n", "over.yaml")
        os.mkdir(self.path("work", "sub"))
        with open(base, encoding="utf-8") as spec:
            done = self.monarch("run", "-", "-f", over, "--set", "meshes.m.workdir=sub", "--no-prefix", stdin=spec)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), [f"over in {self.path('work', 'sub')}"] * 2)
        self.assertIn("from <stdin>", done.err)
        self.assertFalse(os.path.exists(self.job_file("spec.from")), "there is nothing to compare it with")
        self.assert_nothing_left()

    def test_a_program_runs_without_a_spec(self):
        done = self.monarch("run", "-n", "3", "--set", "supervision.restart.max=0", "--", "/bin/sh", "-c",
                            'echo "$RANK of $WORLD_SIZE" "$1"; exit 7', "sh", "a  b")
        self.assertEqual(done.status, 7, done)
        self.assertTrue(set(done.out.splitlines()) <= {f"[main/{r}@v1] {r} of 3 a  b" for r in range(3)}, done)
        hosts = self.monarch("run", "-H", "node[1-2]:2", "--launch", "local", "--", "/bin/sh", "-c",
                             'echo "$RANK on $MONARCH_HOST"')
        self.assertEqual(hosts.status, 0, hosts)
        self.assertEqual(sorted(hosts.out.splitlines()),
                         [f"[main/{r}@v{r // 2 + 1}] {r} on v{r // 2 + 1}" for r in range(4)])
        self.assertEqual(self.monarch("run", "-H", "localhost:2", "--", "true").status, 0)
        self.assert_nothing_left()

    def test_variables_stand_for_flags(self):
        base, over = self.parts()
        env = {"MONARCH_OPT_FILE": f"{base}\n{over}\n", "MONARCH_OPT_SET": "meshes.m.env.X=set\nmeshes.m.dims.host=1",
               "MONARCH_OPT_LAUNCH": "local:2"}
        done = self.monarch("run", "--no-prefix", env=env)
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out.splitlines(), ["set 0 "] * 2)
        flag = self.monarch("run", "--no-prefix", "--set", "meshes.m.env.X=flag", env=env)
        self.assertEqual(flag.out.splitlines(), ["flag 0 "] * 4, "a flag stands for all values of its variable")
        self.assert_nothing_left()

    def test_up_knows_a_live_spec_again(self):
        base = self.job(jobs.FOREVER, hosts=1, slots=1)
        over = self.spec("meshes: {m: {env: {X: over}}}\n", "over.yaml")
        job = self.monarch("up", base, "-f", over).out.strip()
        # However it is put together: another file, a flag, other blanks and comments.
        flat = self.path("work", "flat.yaml")
        self.assertEqual(self.monarch("plan", base, "-f", over, "--save", flat).status, 0)
        self.write("flat.yaml", "# the same\n" + self.read(flat))
        for line in ([base, "-f", over], [base, "--set", "meshes.m.env.X=over"], [flat], ["-f", flat, "-f", over]):
            again = self.monarch("up", *line)
            self.assertEqual((again.status, again.out), (0, job + "\n"), again)
            self.assertIn("is live, and its spec is unchanged", again.err)
        with open(flat, encoding="utf-8") as spec:
            again = self.monarch("up", "-", stdin=spec)
        self.assertEqual((again.status, again.out), (0, job + "\n"), again)
        other = self.monarch("up", base)
        self.assertEqual(other.status, 0, other)
        self.assertNotEqual(other.out.strip(), job)
        for name in self.jobs():
            self.assertEqual(self.monarch("stop", "--kill", name).status, 0)
        self.assert_nothing_left()


    def test_a_job_goes_on_with_its_own_copy_of_an_edited_spec(self):
        base = self.job(jobs.FOREVER, hosts=1, slots=1, supervision={"lease": "8s"})
        words = self.read(base)
        job = self.monarch("up", base, "--set", "meshes.m.env.X=one").out.strip()
        kept = self.read(self.job_file("spec.yaml"))
        self.assertEqual(self.monarch("status", job).err, "")

        self.write("demo.yaml", words.replace('"8s"', '"9s"'))
        status = self.monarch("status", job)
        self.assertIn("supervision.lease: 8s, now 9s", status.err)
        self.assertIn(self.job_file("spec.yaml"), status.err)
        self.assertEqual((status.status, self.read(self.job_file("spec.yaml"))), (0, kept))
        for words_now, said in (("version: 1\n", "is no longer a valid spec"), (None, "No such file")):
            if words_now is None:
                os.unlink(base)
            else:
                self.write("demo.yaml", words_now)
            self.assertIn(said, self.monarch("status", job).err)
        # Its supervisor comes back with the copy as well, and knows no other.
        supervisor = self.process("supervisor")
        self.kill(supervisor)
        self.wait_gone(supervisor)
        harness.wait_for(lambda: '"supervisor.adopted"' in self.monarch("events", job, "--json").out, self.supervisor_log)
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assertEqual(self.monarch("wait", job).status, 143)

        self.write("demo.yaml", words)
        job = self.monarch("up", base).out.strip()
        self.write("demo.yaml", words.replace('"8s"', '"7s"'))
        other = self.monarch("up", base)
        self.assertIn(f"{job} from the same file is live with another spec (supervision.lease: 8s, now 7s)", other.err)
        for name in (job, other.out.strip()):
            self.assertEqual(self.monarch("stop", "--kill", name).status, 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
