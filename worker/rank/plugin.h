#pragma once

// Plugin: a user's shared object with actors and controllers, loaded from a copy of it: what is compared with the hash
// that the job began with is what is loaded, whatever is written into the user's file later. What a user can have done
// wrong is an error that says so, before any of its code runs, where that can be seen.
//
// Thread: any; its code runs on the one that opens it. Lifetime: nothing is unloaded, since what a plugin has started
// may outlive whoever started it.

#include <memory>
#include <string>
#include <string_view>

#include <monarch/plugin_v1.h>

#include "transport/base/result.h"
#include "worker/rank/plugin_copy.h"

namespace monarch {

class Plugin {
 public:
  // `sha256`: in hexadecimal digits; empty: any. `copies`: the folder for its copy, which is made where it is missing.
  static Result<std::unique_ptr<Plugin>> open(const std::string& path, std::string_view sha256,
                                              const std::string& copies);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& path() const { return path_; }
  // kNotFound, with what was most likely meant.
  Result<const monarch_class_v1*> find_class(const std::string& name) const;
  Result<const monarch_controller_v1*> find_controller(const std::string& name) const;

 private:
  explicit Plugin(std::string path) : path_(std::move(path)) {}
  Status load(PluginCopy copy);

  std::string path_;
  const monarch_plugin_v1* has_ = nullptr;
};

}  // namespace monarch
