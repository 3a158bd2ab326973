#pragma once

// GPUs as the nvidia driver shows them in /proc, without CUDA, and RDMA ports as the kernel shows them in /sys, without
// libibverbs.
//
// Thread: any.

#include "supervisor/doctor/finding.h"

namespace monarch::doctor {

std::size_t count_gpus(const Places& places);
bool has_rdma(const Places& places);
Findings check_gpus(const Places& places);
Findings check_rdma(const Places& places);

}  // namespace monarch::doctor
