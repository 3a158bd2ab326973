"""A program to drill: counts steps, and goes on from its last checkpoint, which is a number that it has committed."""

import sys
import time

import monarch_rank

step_s, every, last = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
before = monarch_rank.committed()
step, loss = (before["step"], float(before["what"])) if before else (0, 8.0)
monarch_rank.ready()
while step < last:
    time.sleep(step_s)
    step += 1
    loss *= 0.999
    monarch_rank.step(step)
    if step % every == 0 or step == last:
        monarch_rank.commit(step, repr(loss))
print("done at step", step, "with loss", repr(loss))
