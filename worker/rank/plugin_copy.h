#pragma once

// PluginCopy: a plugin as it was when it was looked at, in a file of our own that nobody writes to: whoever builds the
// plugin again may write into the very file that a process would have mapped. Its name is one that a debugger can open.
// The processes of a host share it. Where the folder takes none (it is read-only in a container, the disk is full), it
// is sealed memory.
//
// Thread: any; it waits for the disk.

#include <memory>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/mapped_memory.h"

namespace monarch {

struct PluginCopy {
  UniqueFd file;
  std::string name;  // for the loader
  std::shared_ptr<const MappedMemory> bytes;
  std::string sha256;  // of these
};

// `expected`: in hexadecimal digits; empty: any. kInvalid: it is no file, it is empty, or another one.
Result<PluginCopy> copy_plugin(const std::string& path, std::string_view expected, const std::string& folder);

}  // namespace monarch
