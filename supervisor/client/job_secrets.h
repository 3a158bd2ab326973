#pragma once

// The files of a job's directory that open something: the server's secret key, its ports, the endpoint. Nothing of a
// job that has ended opens anything (C40), and neither does what a supervisor left that was killed before anybody knew
// it.
//
// Thread: any; touches the file system.

#include "supervisor/journal/secure_directory.h"

namespace monarch {

inline constexpr char kKeyFile[] = "key";
inline constexpr char kPortsFile[] = "ports.json";

// What cannot be removed is named in the log.
void remove_secrets(const SecureDirectory& directory);

}  // namespace monarch
