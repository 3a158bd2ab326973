#include "worker/core/host_places.h"

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kNameBytes = 255;

std::string absolute_or_empty(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() && found->second.starts_with('/') ? found->second : std::string();
}

}  // namespace

bool is_folder_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytes && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Result<HostPlaces> host_places(const Environment& environment, const std::string& job_id,
                               const std::string& host_name) {
  for (const std::string& name : {job_id, host_name}) {
    if (!is_folder_name(name)) return Error{ErrorCode::kInvalid, text("`", printable(name), "` cannot name a folder")};
  }
  std::string state = absolute_or_empty(environment, "XDG_STATE_HOME");
  if (state.empty()) {
    const std::string home = absolute_or_empty(environment, "HOME");
    if (home.empty()) return Error{ErrorCode::kInvalid, "there is neither HOME nor XDG_STATE_HOME to keep state in"};
    state = home + "/.local/state";
  }
  HostPlaces places;
  places.state_directory = text(state, "/monarch/hosts/", job_id, '/', host_name);
  places.log_directory = places.state_directory + "/logs";
  return places;
}

std::string post_door(const std::string& socket_directory) { return text(socket_directory, '/', kPostDoor); }

Status settle_places(Bootstrap& bootstrap, const Environment& environment, const std::string& socket_directory) {
  if (!bootstrap.state_directory.empty()) return {};
  MONARCH_ASSIGN(const HostPlaces own, host_places(environment, bootstrap.job_id, bootstrap.host_name));
  bootstrap.state_directory = own.state_directory;
  if (bootstrap.log_directory.empty()) bootstrap.log_directory = own.log_directory;
  if (bootstrap.socket_directory.empty()) bootstrap.socket_directory = socket_directory;
  return {};
}

}  // namespace monarch
