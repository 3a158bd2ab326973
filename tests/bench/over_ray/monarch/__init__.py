"""Ray's actors under the names of PyTorch Monarch: what tests/bench/peer_actors.py uses of these, and no more."""
