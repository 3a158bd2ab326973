#include "worker/rank/plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <utility>
#include <vector>

#include "transport/base/nearest.h"
#include "transport/base/text.h"
#include "worker/rank/elf_file.h"

namespace monarch {

namespace {

constexpr const char* kGetter = "monarch_plugin_v1_get";

// What the loader says names the copy.
std::string loader_words(const std::string& opened, const std::string& path) {
  const char* const said = ::dlerror();
  std::string words = said == nullptr ? "it does not say why" : said;
  for (std::size_t at = words.find(opened); at != std::string::npos; at = words.find(opened, at + path.size())) {
    words.replace(at, opened.size(), path);
  }
  return words;
}

template <class Row>
Result<const Row*> find(const Row* const* rows, std::size_t count, const std::string& name, const std::string& what) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < count; ++i) {
    if (rows[i]->name == name) return rows[i];
    known.emplace_back(rows[i]->name);
  }
  return Error{ErrorCode::kNotFound, text(what, ' ', name, nearest_or_all(name, known))};
}

}  // namespace

Result<std::unique_ptr<Plugin>> Plugin::open(const std::string& path, std::string_view sha256,
                                             const std::string& copies) {
  MONARCH_ASSIGN(PluginCopy copy, copy_plugin(path, sha256, copies));
  const Status fits = check_elf(copy.bytes->bytes());
  if (!fits.ok()) return Error{fits.error().code, text("plugin ", path, ": ", fits.error().message)};
  std::unique_ptr<Plugin> plugin(new Plugin(path));
  MONARCH_TRY(plugin->load(std::move(copy)));
  return plugin;
}

Status Plugin::load(PluginCopy copy) {
  void* const loaded = ::dlopen(copy.name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return Error{ErrorCode::kInvalid, text("plugin ", path_, " cannot be loaded: ", loader_words(copy.name, path_))};
  }
  struct stat judged {};
  struct stat named {};
  const UniqueFd by_name(::open(copy.name.c_str(), O_PATH | O_CLOEXEC));
  const bool same = ::fstat(copy.file.get(), &judged) == 0 && ::fstat(by_name.get(), &named) == 0 &&
                    judged.st_dev == named.st_dev && judged.st_ino == named.st_ino;
  if (!same) return Error{ErrorCode::kInvalid, text("plugin ", path_, ": its copy was replaced while it was loaded")};
  // WARNING: the loader knows what it has loaded by the name that it was given (glibc 2.36, _dl_map_object), and would
  // take another file of that name for the same. So a descriptor that is a name is never free again.
  if (copy.name.starts_with("/proc/")) (void)copy.file.release();
  const auto getter = reinterpret_cast<monarch_plugin_v1_getter>(::dlsym(loaded, kGetter));
  if (getter == nullptr) {
    return Error{ErrorCode::kInvalid,
                 text("plugin ", path_, " has no function ", kGetter,
                      ": MONARCH_PLUGIN or MONARCH_CONTROLLER has to be in it, and nothing may hide that function")};
  }
  has_ = getter();
  if (has_ == nullptr || has_->struct_size < sizeof(monarch_plugin_v1) || has_->abi != MONARCH_ABI_V1) {
    return Error{ErrorCode::kUnsupported,
                 text("plugin ", path_, " speaks version ", has_ == nullptr ? 0U : unsigned{has_->abi},
                      " of the interface, and this monarch ", unsigned{MONARCH_ABI_V1},
                      ": build it with the headers of this one")};
  }
  return {};
}

Result<const monarch_class_v1*> Plugin::find_class(const std::string& name) const {
  return find(has_->classes, has_->class_count, name, text("plugin ", path_, " has no class"));
}

Result<const monarch_controller_v1*> Plugin::find_controller(const std::string& name) const {
  return find(has_->controllers, has_->controller_count, name, text("plugin ", path_, " has no controller"));
}

}  // namespace monarch
