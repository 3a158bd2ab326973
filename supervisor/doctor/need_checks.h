#pragma once

// What the meshes of a spec need of this machine, and what of it is there: GPUs, cores, and the ports that the spec
// fixes. For virtual hosts, which share one machine.
//
// Thread: any; they wait for the driver and the disk.

#include <optional>
#include <string>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/doctor/finding.h"
#include "transport/messages/bootstrap.h"

namespace monarch::doctor {

// As a worker of this machine would tell it; `visible_devices` is CUDA_VISIBLE_DEVICES of the shell, nothing where it
// is not set.
HostInventory inventory_of_this_machine(const std::optional<std::string>& visible_devices);

// One finding for each mesh that has `resources` or lacks some; also GPUs that another job holds. `locks` is the folder
// with the locks of this user's jobs.
Findings check_resources(const JobSpec& spec, const HostInventory& inventory, const std::string& locks);

// Each port that the spec fixes: free, or who has it.
Findings check_ports(const JobSpec& spec, const std::string& locks);

// The job that holds a thing ("port-8080"), if a live one does.
std::optional<std::string> holder_of(const std::string& thing, const std::string& locks);

}  // namespace monarch::doctor
