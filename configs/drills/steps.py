"""A program to drill: counts steps, and goes on from its last checkpoint, which is a number that it has committed. With `ring` the
two ranks of a gang pass a byte around at each step."""
import os
import socket
import sys
import time

import monarch_rank

step_s, every, last = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
before = monarch_rank.committed()
step, loss = (before["step"], float(before["what"])) if before else (0, 8.0)
ring = socket.socket() if "ring" in sys.argv else None
if ring and os.environ["RANK"] == "0":
    ring = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))).accept()[0]
while ring and os.environ["RANK"] == "1" and ring.connect_ex((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))):
    time.sleep(0.02)
monarch_rank.ready()
while step < last:
    time.sleep(step_s)
    if ring and (ring.sendall(b"x") or ring.recv(1)) != b"x":
        sys.exit("the other rank has left the ring")
    step += 1
    loss *= 0.999
    monarch_rank.step(step)
    if step % every == 0 or step == last:
        monarch_rank.commit(step, repr(loss))
print("done at step", step, "with loss", repr(loss))
