#pragma once

// A directory below the system's temporary one, removed with all that is in it.

#include <fcntl.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "transport/base/assert.h"
#include "transport/base/unique_fd.h"

namespace monarch::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "monarch-test-XXXXXX").string();
    MONARCH_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;  // a leftover below /tmp is no reason to fail a test that passed
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  UniqueFd open() const { return UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

 private:
  std::string path_;
};

}  // namespace monarch::testing
