"""All-reduce of floats by PyTorch's gloo among processes, in place: gloo.py RANKS MIB."""
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(place, size, mib, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=place, world_size=size)
    x = torch.zeros(mib << 18)
    took = []
    for i in range(13):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(x)
        if i >= 2:
            took.append(time.perf_counter() - start)
    if place == 0:
        print(f"gloo: {size} ranks, {mib} MiB: median {1e3 * statistics.median(took):.2f} ms")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    size, mib = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank, (size, mib, folder + "/meeting"), nprocs=size)
