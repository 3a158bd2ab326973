"""The user's own limits: they hold for the ranks, and not for what keeps many of them."""

import harness
import jobs


class Descriptors(jobs.JobTest):
    def test_one_host_keeps_more_ranks_than_the_soft_limit_has_descriptors_for(self):
        spec = self.job("ulimit -Sn", hosts=1, slots=80)
        run = self.start_program("/bin/sh", "-c", f"ulimit -Sn 256; exec {harness.MONARCH} run --no-prefix {spec}")
        done = run.finished()
        self.assert_result(done, 0, "succeeded")
        self.assertEqual(done.out, "256\n" * 80)
        self.assert_nothing_left()


harness.main()
