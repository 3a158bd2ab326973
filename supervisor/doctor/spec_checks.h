#pragma once

// What the meshes of a spec need of this machine: programs, folders, variables. Nothing is started.
//
// Thread: any; they wait for the disk.

#include <map>
#include <string>
#include <string_view>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/doctor/finding.h"

namespace monarch::doctor {

using Variables = std::map<std::string, std::string, std::less<>>;

// One check per mesh.
std::vector<Check> spec_checks(const JobSpec& spec, const Variables& environment);

// Whether a word has a part that only the host, or a shell there, finds out.
bool expands(std::string_view word);

// The file that would be executed; kNotFound and kInvalid say why there is none.
Result<std::string> find_program(const std::string& program, const std::string& workdir,
                                 const std::string& search_path);

}  // namespace monarch::doctor
