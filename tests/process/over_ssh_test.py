"""`monarch over-ssh`: the half of a viewer that runs where the job is, spoken to over pipes as its other half does over SSH."""

import os
import select
import signal
import struct

import harness
import jobs
from viewer_link import Link, frame, numbers


TICKS = "while echo tick; do nap 0.05; done\n"


class OverSsh(jobs.JobTest):
    def up(self, script=TICKS, **keys):
        done = self.monarch("up", self.job(script, hosts=1, slots=2, **keys))
        self.assertEqual(done.status, 0, done)
        return done.out.strip()

    def stop(self, job):
        self.assertEqual(self.monarch("stop", job).status, 0)
        self.assert_nothing_left()

    def ended(self, script):
        run = self.monarch("run", self.job(script, hosts=1, slots=2))
        self.assert_nothing_left()
        return run, self.jobs()[0]

    def shown(self, *words, job="", **options):
        """What a command shows there, to its end."""
        link = Link(self, words, job, **options)
        link.order()
        link.until("end")
        self.assertEqual(link.status(), 0, link)
        return link

    def test_what_a_command_shows_comes_byte_for_byte(self):
        _, job = self.ended("printf 'a\\377b\\n'; echo to stderr >&2; exit $((MONARCH_RANK * 7))")
        for words in (["status", job, "--json"], ["status", job], ["logs", job], ["events", job, "--json"], ["wait", job]):
            here = self.start(*words)
            here.wait()
            there = self.shown(*words, job=job)
            self.assertEqual(there.out, here.out_bytes(), words)
            self.assertEqual(there.err.decode(), here.err, words)
            self.assertEqual((there.end["exit_code"], there.end["signal"]), (here.status, 0), words)
        self.assertEqual(there.end["job"], {"v": 1, "life": "ended", "phase": "failed", "exit_code": 7, "running": 0})

    def test_terminals_at_the_other_end_decide_about_colour_and_this_machines_shell_does_not(self):
        _, job = self.ended("true")
        elsewhere = {"NO_COLOR": "1", "MONARCH_OPT_JSON": "true", "GITHUB_ACTIONS": "true"}
        plain = self.shown("status", job, job=job, env=elsewhere)
        coloured = self.shown("status", job, job=job, terminal="terminal:80 terminal:80",
                              variables=[("TERM", "xterm")], env=elsewhere)
        self.assertNotIn(b"\x1b[", plain.out)
        self.assertIn(b"\x1b[", coloured.out)
        self.assertEqual(plain.out.splitlines()[0], self.monarch("status", job).out.encode().splitlines()[0])
        # What is no display variable does not become one because somebody sends it.
        self.assertNotIn(b'"v":1', self.shown("status", job, job=job, variables=[("MONARCH_OPT_JSON", "true")]).out)

    def test_signals_reach_the_viewer_and_the_job_goes_on(self):
        job = self.up()
        link = Link(self, ["attach", job], job)
        link.order()
        link.until(lambda: b"tick" in link.out)
        link.signal(signal.SIGINT)
        link.until("end")
        self.assertEqual(link.end["exit_code"], 130, link)
        self.assertIn(b"detached", link.err)
        self.assertEqual(link.end["job"]["life"], "live")
        self.assertEqual(link.end["job"]["running"], 2)
        self.stop(job)

    def test_a_command_that_a_signal_ends_says_so(self):
        job = self.up()
        link = Link(self, ["events", job, "-f"], job)
        link.order()
        link.until(lambda: b"job.running" in link.out)
        link.signal(signal.SIGTERM)
        link.until("end")
        self.assertEqual((link.end["exit_code"], link.end["signal"]), (0, signal.SIGTERM))
        self.stop(job)

    def test_a_reader_that_goes_away_ends_what_it_would_end_here(self):
        job = self.up("while echo line; do nap 0.01; done")
        link = Link(self, ["logs", job, "-f"], job)
        link.order()
        link.until(lambda: link.out.count(b"\n") > 3)
        link.send("closed", numbers(1))
        link.until("end")
        self.assertEqual(link.end["exit_code"], 0, link)
        self.stop(job)

    def test_who_takes_nothing_stops_the_viewer_and_costs_no_memory(self):
        lines = 500000 if harness.SANITIZED else 3000000  # several windows
        job = self.up(f"[ $MONARCH_RANK = 0 ] && seq 1 {lines}; mark wrote; " + jobs.FOREVER)
        self.wait_for_marks("wrote", 2)
        link = Link(self, ["logs", job, "--no-prefix"], job)
        link.acknowledges = False
        link.order()
        link.until(lambda: len(link.out) > 1000000)
        while select.select([link.child.stdout], [], [], 0.5)[0]:
            link.step()
        self.assertLess(len(link.out), 2 << 20, "a window of a mebibyte")
        self.assertNotIn("end", link.frames)
        if not harness.SANITIZED:
            self.assertLess(harness.wait_for(lambda: resident(link.child.pid), "its memory"), 40 << 20)
        link.acknowledges = True
        link.send("taken", numbers(link.taken))
        link.until("end")
        self.assertEqual(link.out, b"".join(b"%d\n" % n for n in range(1, lines + 1)))
        self.stop(job)

    def test_a_connection_that_ends_is_taken_up_by_another_without_a_gap(self):
        job = self.up("for i in $(seq 1 200); do echo $MONARCH_RANK.$i; nap 0.01; done; mark done; " + jobs.FOREVER)
        link = Link(self, ["logs", job, "-f", "--no-prefix", "--rank", "0"], job, lingers=60)
        link.order()
        link.until(lambda: link.out.count(b"\n") >= 5)
        out, links = b"", [link]
        for _ in range(3):
            out += links[-1].out
            links[-1].cut()
            links.append(Link(self, before=links[-1]))
            links[-1].order()
            links[-1].until(lambda: links[-1].out.count(b"\n") >= 5 or b".200" in links[-1].out)
        last = links[-1]
        last.until(lambda: b"0.200\n" in last.out)
        last.signal(signal.SIGINT)
        last.until("end")
        self.assertEqual((out + last.out).decode().split(), [f"0.{i}" for i in range(1, 201)])
        for each in links:
            each.status()
        self.stop(job)

    def test_a_new_connection_wins_while_the_old_one_is_silent(self):
        job = self.up()
        first = Link(self, ["attach", job], job, lingers=60)
        first.order()
        first.until(lambda: b"tick" in first.out)
        second = Link(self, before=first)
        second.order()
        second.until("welcome")
        second.signal(signal.SIGINT)
        second.until("end")
        self.assertEqual(second.status(), 0)
        self.assertEqual(first.status(), 0)
        self.stop(job)

    def test_a_signal_that_the_old_connection_brought_is_counted(self):
        job = self.up()
        first = Link(self, ["attach", job], job, lingers=60)
        first.order()
        first.until(lambda: b"tick" in first.out)
        first.signal(signal.SIGWINCH)
        first.send("ping")
        first.until("pong")
        self.assertEqual(first.welcome["heard"], 0)
        first.cut()
        second = Link(self, before=first)
        second.order()
        second.until("welcome")
        self.assertEqual(second.welcome["heard"], 1)
        second.signal(signal.SIGINT)
        second.until("end")
        self.stop(job)

    def test_without_a_connection_it_ends_when_its_time_is_over_and_the_job_goes_on(self):
        job = self.up()
        for lingers in (0, 1):
            link = Link(self, ["attach", job], job, lingers=lingers)
            link.order()
            link.until(lambda: b"tick" in link.out)
            link.cut()
            self.assertEqual(link.status(), 0)
            self.assertEqual(self.find("monarch", "attach"), [])
        late = Link(self, before=link)
        late.order()
        late.until("refused")
        self.assertEqual(late.refused, "the viewer here has ended meanwhile")
        self.assertEqual(late.status(), 70)
        self.assertIn("live", self.monarch("ps", "--json").out)
        self.stop(job)

    def follow(self, job, *flags, **options):
        """The half of `run` that is there, as its owner has it."""
        link = Link(self, ["follow", job, "--spec-name=demo.yaml", *flags], job, **options)
        link.order()
        return link

    def test_run_there_shows_all_from_the_start_and_stops_at_the_first_ctrl_c(self):
        job = self.up("trap 'echo bye; exit 0' TERM; echo first; " + TICKS)
        link = self.follow(job)
        link.until(lambda: link.out.count(b"first") == 2 and b"tick" in link.out and b"job.running" in link.err)
        link.signal(signal.SIGINT)
        link.until("end")
        self.assertIn(b"stopping; Ctrl-C again kills", link.err)
        self.assertIn(b"bye", link.out)
        self.assertEqual(link.end["exit_code"], 130, link)
        self.assertEqual(link.end["job"]["life"], "ended")
        self.assert_nothing_left()

    def test_run_there_kills_at_the_second_ctrl_c_and_leaves_at_the_third(self):
        job = self.up("trap '' TERM; " + TICKS, mesh={"stop": {"grace": "60s"}})
        link = self.follow(job)
        link.until(lambda: b"tick" in link.out)
        for words in (b"Ctrl-C again kills", b"Ctrl-C again leaves"):
            link.signal(signal.SIGINT)
            link.until(lambda words=words: words in link.err)
        link.until("end")
        self.assertEqual(link.end["exit_code"], 130, link)
        self.assert_nothing_left()

    def test_run_there_that_loses_everybody_leaves_the_job_running(self):
        job = self.up()
        link = self.follow(job)
        link.until(lambda: b"tick" in link.out)
        link.cut()
        self.assertEqual(link.status(), 0)
        self.assertIn("live", self.monarch("ps", "--json").out)
        self.stop(job)

    def test_up_there_leaves_it_running_and_says_its_id(self):
        job = self.up()
        link = self.follow(job, "--until-running")
        link.until("end")
        self.assertEqual((link.out.decode(), link.end["exit_code"]), (job + "\n", 0), link)
        self.stop(job)

    def test_reports_are_sent_at_the_end_and_leave_nothing(self):
        _, job = self.ended("echo hello; exit $((MONARCH_RANK * 7))")
        link = self.shown("attach", job, job=job, junit=True, artifacts=True)
        self.assertEqual(link.end["exit_code"], 7)
        for name, (size, content) in link.files.items():
            self.assertEqual(size, len(content), name)
        self.assertIn(b"<testsuite", link.files["junit.xml"][1])
        self.assertEqual(link.files["artifacts/logs/m/1.1.out"][1], b"hello\n")
        self.assertEqual(link.files["artifacts/spec.yaml"][1].decode(), self.read(self.job_file("spec.yaml")))
        self.assertEqual(os.listdir(self.path("state", "reports")), [])
        self.assert_nothing_left()

    def test_reports_wait_for_who_takes_them(self):
        _, job = self.ended("seq 1 1000000")
        link = Link(self, ["attach", job], job, artifacts=True)
        link.acknowledges = False
        link.order()
        while select.select([link.child.stdout], [], [], 0.5)[0]:
            link.step()
        self.assertNotIn("end", link.frames)
        if not harness.SANITIZED:
            self.assertLess(resident(link.child.pid), 40 << 20)
        link.acknowledges = True
        link.send("taken", numbers(link.taken))
        link.until("end")
        for rank in (0, 1):
            size, content = link.files[f"artifacts/logs/m/{rank}.1.out"]
            self.assertEqual((size, content), (6888896, b"".join(b"%d\n" % n for n in range(1, 1000001))))

    def test_what_is_no_order_is_refused_by_name(self):
        order = b'{"v":1,"words":["version"],"variables":[]}'
        cases = [(b"GET / HTTP/1.1\r\n\r\n", "a frame of the unknown kind 71"),
                 (struct.pack(">BQ", 1, 1 << 63), "a frame of 9223372036854775808 bytes, of which 262144 are the most"),
                 (frame("signal", numbers(9)), "what came first is no order"),
                 (frame("order", b"{"), "an order that cannot be read"),
                 (frame("order", order.replace(b'"v":1', b'"v":2')), "an order of another version of monarch"),
                 (frame("order", order) + frame("ping"), "something came behind the order, before it was answered"),
                 (frame("order", order.replace(b"{", b'{"token":"../../x",', 1)),
                  "the order names a viewer in a way that nobody does")]
        for said, why in cases:
            link = Link(self)
            link.send_raw(said)
            link.until("refused")
            self.assertEqual(link.refused, why)
            self.assertEqual(link.status(), 70)

    def test_what_nobody_says_in_the_middle_ends_the_viewer(self):
        job = self.up()
        for said in (b"\xff" * 64, struct.pack(">BQ", 2, 1 << 63), frame("signal", numbers(9999)), frame("signal", b"x"),
                     frame("taken", numbers(1 << 40)), frame("out", b"forged"), frame("window", numbers(1 << 40, 1))):
            link = Link(self, ["attach", job], job)
            link.order()
            link.until(lambda: b"tick" in link.out)
            link.send_raw(said)
            self.assertEqual(link.status(), 0, said)
        self.assertIn("live", self.monarch("ps", "--json").out)
        self.stop(job)


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    harness.main()
