#include "supervisor/spec/hosts/ssh_hosts.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kForms = "write `node[01-20]` or `[node01, node02]`";

std::string value_or_kind(const YamlNode& value) {
  return value.is(YamlNode::Kind::kScalar) ? quoted_value(value.text) : std::string(kind_name(value));
}

// What a host that is no name was meant to be; empty: no guess.
std::string host_meant(std::string_view item) {
  const std::size_t at = item.find('@');
  const std::size_t colon = item.rfind(':');
  if (at != std::string_view::npos && is_user_name(item.substr(0, at)) && is_host_name(item.substr(at + 1))) {
    return text("{name: ", item.substr(at + 1), ", user: ", item.substr(0, at), "}");
  }
  if (numeric_address(item) != NumericAddress::kNone) return text("{name: gpu1, address: \"", item, "\"}");
  const auto jump = read_jump(item);
  constexpr std::uint16_t kLeastForSsh = 1024;  // less, but for 22, is the number of ranks that others write there
  if (!jump || !jump->port || colon == std::string_view::npos || !is_host_name(jump->address)) return "";
  if (*jump->port != 22 && *jump->port < kLeastForSsh) return "";
  return text("{name: ", jump->address, ", port: ", *jump->port, "}");
}

struct HostKey {
  std::string_view key;
  std::string_view id;
  std::string_view what;
  std::string_view label;
};
constexpr std::array<HostKey, 5> kKeys = {{
    {"name", "E0208", "the name of a host", "letters, digits, `.`, `-` and `_`, and no dash first"},
    {"address", "E0208", "the address of a host", "a name, or an address in numbers"},
    {"user", "E0218", "the name of a user", "letters, digits, `.`, `-` and `_`, a letter first"},
    {"port", "E0206", "a port", "from 1 to 65535"},
    {"host_key", "E0219", "the fingerprint of a key", "SHA256: and 43 characters, as ssh shows it"},
}};

class HostReader {
 public:
  HostReader(const std::string& path, const SshDefaults& defaults, Report& report)
      : path_(path), defaults_(defaults), report_(report) {}

  std::vector<SshHost> read(const YamlNode& node) {
    if (node.is(YamlNode::Kind::kScalar)) {
      add_names(node, true);
    } else if (node.is(YamlNode::Kind::kList) && !node.items.empty()) {
      for (const YamlNode& item : node.items) add_item(item);
    } else if (!node.is(YamlNode::Kind::kRefused)) {
      const bool empty = node.is(YamlNode::Kind::kList);
      refuse_list(node, empty ? text("`", path_, "` is empty")
                              : text("`", path_, "` takes a list of hosts, not ", kind_name(node)));
    }
    if (hosts_.size() > limits::kHostsPerJob) {
      report_.error(
          "E0307", node.place,
          {.message = text("`", path_, "` has ", hosts_.size(), " hosts; a job has at most ", limits::kHostsPerJob),
           .label = "",
           .help = "keep fewer of them"});
    }
    return std::move(hosts_);
  }

 private:
  void refuse_list(const YamlNode& node, std::string message) {
    report_.error("E0208", node.place,
                  {.message = std::move(message), .label = "no hosts", .help = std::string(kForms)});
  }

  void add_item(const YamlNode& item) {
    if (item.is(YamlNode::Kind::kScalar)) return add_names(item, false);
    if (item.is(YamlNode::Kind::kMap)) return add_map(item);
    if (item.is(YamlNode::Kind::kRefused)) return;
    report_.error("E0208", item.place,
                  {.message = text("`", path_, "` takes names of hosts, not ", kind_name(item)),
                   .label = "no host",
                   .help = std::string(kForms)});
  }

  // `whole`: not an item of a list, and its suggestions must be one.
  void add_names(const YamlNode& node, bool whole) {
    auto names = expand_hostlist(node.text);
    if (!names.ok()) {
      const std::string meant = host_meant(node.text);
      const std::string list = whole ? text("[", meant, "]") : meant;
      const bool ranks = meant.empty() && expand_slot_list(node.text).ok();
      report_.error("E0208", node.place,
                    {.message = text("`", path_, "` is not a list of hosts"),
                     .label = names.error().message,
                     .help = !meant.empty() ? text("did you mean `", list, "`?")
                             : ranks        ? "`dims` of a mesh say how many ranks a host has"
                                            : std::string(kForms)});
      return;
    }
    for (std::string& name : *names) {
      SshHost host{.name = name, .address = name, .user = defaults_.user, .port = defaults_.port, .host_key = ""};
      add(std::move(host), node.place);
    }
  }

  void add_map(const YamlNode& item) {
    const std::size_t before = report_.count();
    for (const YamlKey& key : item.keys) {
      if (is_known(key.text)) continue;
      std::vector<std::string> known;
      for (const HostKey& row : kKeys) known.emplace_back(row.key);
      const auto near = nearest(key.text, known);
      report_.error(
          "E0107", key.place,
          {.message = text("unknown key `", key.text, "`"),
           .label = "not a key of a host",
           .help = near ? text("did you mean `", *near, "`?") : text("the keys here are: ", join(known, ", "))});
    }
    SshHost host{.name = read(item, "name"),
                 .address = read(item, "address"),
                 .user = read(item, "user"),
                 .port = read_port(item),
                 .host_key = read(item, "host_key")};
    if (item.find("name") == nullptr) {
      report_.error("E0101", item.place,
                    {.message = text("`", path_, "`: a host without `name`"),
                     .label = "",
                     .help = "`name`: how the job calls it"});
    }
    if (report_.count() > before || host.name.empty()) return;
    if (host.address.empty()) host.address = host.name;
    if (host.user.empty()) host.user = defaults_.user;
    if (!host.port) host.port = defaults_.port;
    add(std::move(host), item.find("name")->place);
  }

  void add(SshHost host, Place place) {
    if (!names_.insert(host.name).second) {
      report_.error("E0208", place,
                    {.message = text("`", path_, "` is not a list of hosts"),
                     .label = text("`", host.name, "` is in the list twice"),
                     .help = "write it once; `{name: other, address: ...}` is a second worker on a machine"});
      return;
    }
    hosts_.push_back(std::move(host));
  }

  static bool is_known(std::string_view key) {
    return std::any_of(kKeys.begin(), kKeys.end(), [&](const HostKey& row) { return row.key == key; });
  }

  static bool is_right(std::string_view key, std::string_view value) {
    if (key == "name") return is_host_name(value);
    if (key == "address") return is_address(value);
    return key == "user" ? is_user_name(value) : is_key_fingerprint(value);
  }

  // Empty: not written, or reported.
  std::string read(const YamlNode& item, std::string_view key) {
    const YamlNode* value = item.find(key);
    if (value == nullptr || value->is(YamlNode::Kind::kRefused)) return "";
    if (value->is(YamlNode::Kind::kScalar) && is_right(key, value->text)) return value->text;
    const bool pin = key == "host_key";
    refuse(key, *value,
           pin ? "`ssh-keyscan -t ed25519 HOST | ssh-keygen -lf -` shows it; compare it with the host's own" : "");
    return "";
  }

  std::optional<std::uint16_t> read_port(const YamlNode& item) {
    const YamlNode* port = item.find("port");
    if (port == nullptr || port->is(YamlNode::Kind::kRefused)) return std::nullopt;
    const auto number = integer_of(&item, "port");
    if (number && *number >= 1 && *number <= 65'535) return static_cast<std::uint16_t>(*number);
    refuse("port", *port, "");
    return std::nullopt;
  }

  void refuse(std::string_view key, const YamlNode& value, std::string help) {
    const auto row = std::find_if(kKeys.begin(), kKeys.end(), [&](const HostKey& r) { return r.key == key; });
    report_.error(row->id, value.place,
                  {.message = text("`", key, "` of a host takes ", row->what, ", not ", value_or_kind(value)),
                   .label = std::string(row->label),
                   .help = std::move(help)});
  }

  const std::string& path_;
  const SshDefaults& defaults_;
  Report& report_;
  std::vector<SshHost> hosts_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<SshHost> read_ssh_hosts(const YamlNode& node, const std::string& path, const SshDefaults& defaults,
                                    Report& report) {
  return HostReader(path, defaults, report).read(node);
}

}  // namespace monarch
