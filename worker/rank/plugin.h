#pragma once

// Plugin: a user's shared object with actors and controllers, loaded. It is opened once: what is compared with the hash
// that the job began with is what is loaded. What a user can have done wrong is an error that says so, before any of
// its code runs, where that can be seen.
//
// Thread: any; its code runs on the one that opens it. Lifetime: nothing is unloaded, since what a plugin has started
// may outlive whoever started it.

#include <memory>
#include <string>
#include <string_view>

#include <monarch/plugin_v1.h>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class Plugin {
 public:
  // `sha256`: in hexadecimal digits; empty: any.
  static Result<std::unique_ptr<Plugin>> open(const std::string& path, std::string_view sha256);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& path() const { return path_; }
  // kNotFound, with what was most likely meant.
  Result<const monarch_class_v1*> find_class(const std::string& name) const;
  Result<const monarch_controller_v1*> find_controller(const std::string& name) const;

 private:
  explicit Plugin(std::string path) : path_(std::move(path)) {}
  Status load(UniqueFd file);

  std::string path_;
  const monarch_plugin_v1* has_ = nullptr;
};

}  // namespace monarch
