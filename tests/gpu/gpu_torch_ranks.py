"""The ranks of job_rows.py that use PyTorch: gpu_torch_ranks.py ROLE SETTINGS. On a machine without a GPU their tensors are the host's."""

import contextlib
import json
import os
import sys
import time

import monarch_tensors as tensors
import torch

ROWS, COLUMNS = 64, 256
DTYPES = [name for name in ("float32", "bfloat16", "float16", "int64", "bool", "float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]
VERSIONS = 4
CYCLES = 200_000_000  # of a GPU's clock: a tenth of a second


def content(index, version, device):
    """The bytes of a tensor: ones and noughts for bool, whatever else for all others."""
    dtype = getattr(torch, DTYPES[index])
    size = torch.empty((), dtype=dtype).element_size()
    raw = (torch.arange(ROWS * COLUMNS * size, device=device) * 7 + version * 13 + index * 31) % (2 if dtype == torch.bool else 251)
    return raw.to(torch.uint8).view(dtype).reshape(ROWS, COLUMNS)


def mark(settings, what):
    with open(os.path.join(settings["folder"], what), "w", encoding="utf-8"):
        pass


def wait_for(settings, what):
    until = time.monotonic() + 60
    while not os.path.exists(os.path.join(settings["folder"], what)):
        if time.monotonic() > until:
            sys.exit(f"{what}: not within a minute")
        time.sleep(0.002)


def on_a_stream(settings):
    return torch.cuda.stream(torch.cuda.Stream()) if settings["device"] == "cuda" else contextlib.nullcontext()


def torch_train(settings):
    device = settings["device"]
    held = {name: torch.empty(ROWS, COLUMNS, dtype=getattr(torch, name), device=device) for name in DTYPES}
    wide = torch.empty(ROWS, 2 * COLUMNS, dtype=torch.float32, device=device)
    with on_a_stream(settings), tensors.publisher("weights", linger=20) as weights:
        for number in range(VERSIONS):
            if device == "cuda":
                torch.cuda._sleep(CYCLES)
            for index, name in enumerate(DTYPES):
                held[name].copy_(content(index, number, device))
            wide[:, COLUMNS:].copy_(content(0, number + 100, device))
            with weights.version(number) as version:
                for name, tensor in held.items():
                    version.put(name, tensor)
                version.put("strided", wide[:, COLUMNS:])
                wide.zero_()  # what comes after a put changes nothing of the version
                for tensor in held.values():
                    tensor.zero_()
            mark(settings, f"published-{number}")
            wait_for(settings, f"pulled-{number}")


def torch_generate(settings):
    device = settings["device"]
    into = {name: torch.empty(ROWS, COLUMNS, dtype=getattr(torch, name), device=device) for name in DTYPES}
    wide = torch.empty(ROWS, 2 * COLUMNS, dtype=torch.float32, device=device)
    got = None
    with on_a_stream(settings):
        pull = tensors.source("trainer", "weights").into({**into, "strided": wide[:, :COLUMNS]})
        for number in range(VERSIONS):
            wait_for(settings, f"published-{number}")
            got = pull(newer_than=got, timeout=60, wait=True)
            for index, name in enumerate(DTYPES):
                if not torch.equal(into[name].view(torch.uint8), content(index, got.version, device).view(torch.uint8)):
                    sys.exit(f"version {got.version}: {name} has other bytes")
            if not torch.equal(wide[:, :COLUMNS].contiguous().view(torch.uint8), content(0, got.version + 100, device).view(torch.uint8)):
                sys.exit(f"version {got.version}: the strided tensor has other bytes")
            mark(settings, f"pulled-{number}")
    print("FOUND " + json.dumps({"role": "torch_generate", "dtypes": DTYPES, "version": got.version, "device": str(wide.device)}), flush=True)


ROLES = {role.__name__: role for role in (torch_train, torch_generate)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](json.loads(sys.argv[2]))
