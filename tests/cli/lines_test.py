"""How the lines of ranks are shown: --prefix, --fold, --since, --tail, --grep, and the same of events."""

import datetime
import re

import harness
import jobs

SAME = "echo epoch 1; echo epoch 2; echo rank $MONARCH_RANK\n"


class Lines(jobs.JobTest):
    def up(self, script, ranks, **keys):
        done = self.monarch("up", self.job(script, **keys))
        self.assertEqual(done.status, 0, done)
        self.wait_for_marks("there", ranks)
        return done.out.strip()

    def logs(self, *flags):
        done = self.monarch("logs", "demo", *flags)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.err, "", done)
        return done.out

    def test_a_prefix_says_what_it_is_asked_to(self):
        done = self.monarch("run", "-q", "--prefix", "{mesh}.{rank}/{gang}/{local_rank}/{host}/{stream}/{generation}: ",
                            self.job("echo out; echo err >&2", hosts=2, slots=1))
        self.assertEqual(sorted(done.out.splitlines()), ["m.0/0/0/v1/stdout/1: out", "m.1/0/0/v2/stdout/1: out"], done)
        self.assertEqual(sorted(done.err.splitlines()), ["m.0/0/0/v1/stderr/1: err", "m.1/0/0/v2/stderr/1: err"], done)
        timed = self.logs("--prefix", "{time} {job} ", "--stdout")
        for line in timed.splitlines():
            at, job, word = line.split()
            written = datetime.datetime.fromisoformat(at.replace("Z", "+00:00"))
            age = datetime.datetime.now(datetime.timezone.utc) - written
            self.assertLess(abs(age.total_seconds()), 120, line)
            self.assertEqual((job, word), (self.jobs()[0], "out"))
        self.assert_nothing_left()

    def test_what_all_ranks_write_is_folded_and_counted(self):
        spec = self.job(SAME, hosts=2, slots=4)
        done = self.monarch("run", "-q", "--fold", spec)
        lines = done.out.splitlines()
        # However the machine delays them, every rank is named once for each line.
        for word in ("epoch 1", "epoch 2"):
            named = []
            for line in lines:
                match = re.fullmatch(r"\[m/([0-9,-]+)(?:@v\d)?(?: ×(\d+))?\] (.*)", line)
                self.assertTrue(match, line)
                if match[3] != word:
                    continue
                ranks = [r for part in match[1].split(",")
                         for r in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
                self.assertEqual(len(ranks), int(match[2] or 1), line)
                named += ranks
            self.assertEqual(sorted(named), list(range(8)), done)
        for rank in range(8):
            self.assertIn(f"[m/{rank}@v{rank // 4 + 1}] rank {rank}", lines)
        # Read from the files, nothing delays them.
        self.assertEqual(self.logs("--fold").splitlines()[:2], ["[m/0-7 ×8] epoch 1", "[m/0-7 ×8] epoch 2"])
        both = self.monarch("run", "--fold", "--json", spec)
        self.assertEqual(both.status, 2, both)
        self.assert_nothing_left()

    def test_logs_begin_where_they_are_asked_to(self):
        job = self.up("seq 1 1000; mark there; until [ -e go ]; do nap 0.05; done; echo late; exec sleep 1000\n", 2,
                      hosts=1, slots=2)
        self.assertEqual(self.logs("--tail", "2", "--no-prefix"), "999\n1000\n999\n1000\n")
        self.assertEqual(self.logs("--tail", "0"), "")
        self.assertEqual(self.logs("--grep", "^99[0-9]?$", "--rank", "1"),
                         "".join(f"[m/1@v1] {n}\n" for n in [99, *range(990, 1000)]))
        self.assertEqual(self.logs("--since", "1h", "--tail", "1", "--rank", "0"), "[m/0@v1] 1000\n")
        # A moment that is surely after all that is written: the times of a file are good to a second.
        harness.wait_for(lambda: self.logs("--since", "1s") == "", "silence of a second")
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        follower = self.start("logs", "-f", "--since", moment, "--grep", "la.e")
        self.write("go", "")
        follower.wait_for_out(r"\[m/0@v1\] late\n(.*\n)*.*\[m/1@v1\] late|\[m/1@v1\] late\n(.*\n)*.*\[m/0@v1\] late")
        self.assertEqual(sorted(self.logs("--since", moment).splitlines()), ["[m/0@v1] late", "[m/1@v1] late"])
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assertEqual(follower.wait(), 0)
        self.assertEqual(sorted(follower.out.splitlines()), ["[m/0@v1] late", "[m/1@v1] late"])
        # The same from the files alone, after the job.
        self.assertEqual(sorted(self.logs("--since", moment).splitlines()), ["[m/0@v1] late", "[m/1@v1] late"])
        self.assert_nothing_left()

    def test_events_of_a_time_the_last_ones_and_those_that_match(self):
        job = self.up("mark there; exec sleep 1000\n", 1, hosts=1, slots=1)
        follower = self.start("events", "-f", "--tail", "1", "--grep", r" job\.")
        follower.wait_for_out("job.running")
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assertEqual(follower.wait(), 0)
        self.assertEqual([line.split()[1] for line in follower.out.splitlines()][:1], ["job.running"])
        types = [o["event"] for o in self.monarch("events", job, "--json").json()]
        self.assertEqual([o["event"] for o in self.monarch("events", job, "--json", "--tail", "2").json()], types[-2:])
        self.assertEqual([o["event"] for o in self.monarch("events", job, "--json", "--grep", "^[^ ]+ host").json()],
                         [t for t in types if t.startswith("host.")])
        self.assertEqual(self.monarch("events", job, "--since", "1h").out, self.monarch("events", job).out)
        self.assertEqual(self.monarch("events", job, "--since", "2099-01-01").out, "")
        self.assert_nothing_left()

    def test_a_bad_pattern_or_format_names_its_place_and_starts_nothing(self):
        spec = self.job("true")
        for flags, words in ((["--prefix", "{rnak} "], "column 1: there is no {rnak}; did you mean {rank}?"),
                             (["--prefix", "x", "--no-prefix"], "cannot be used together")):
            done = self.monarch("run", *flags, spec)
            self.assertEqual((done.status, done.out), (2, ""), done)
            self.assertIn(words, done.err)
        self.assertEqual(self.jobs(), [])


if __name__ == "__main__":
    harness.main()
