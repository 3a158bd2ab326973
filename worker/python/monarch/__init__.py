"""Python programs on a job of monarch: `from monarch.actor import Actor, endpoint, this_host`. See monarch-python(7)."""
