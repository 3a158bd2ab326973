#include "cli/args/selector.h"

#include <algorithm>

#include "cli/args/mesh_names.h"
#include "supervisor/core/spec/hostlist.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostHostsShown = 16;

Complaint malformed(std::string message, std::string help) {
  return {.id = "E0920", .message = std::move(message), .help = std::move(help)};
}

Complaint missing(std::string message, std::string help) {
  return {.id = "E0921", .message = std::move(message), .help = std::move(help)};
}

std::string indices_of(std::uint32_t size) { return size == 1 ? std::string("0") : text("0-", size - 1); }

std::string dimensions_of(const MeshSpec& mesh) {
  std::vector<std::string> parts;
  for (const Dimension& dim : mesh.dims) parts.push_back(text(dim.name, "=", indices_of(dim.size)));
  return join(parts, " ");
}

// One part of --at: the indices begin, begin + step, … below end of a dimension.
struct Range {
  std::string dim;
  std::string written;
  bool single = false;
  std::uint32_t begin = 0;
  std::optional<std::uint32_t> end;  // nothing: to the last
  std::uint32_t step = 1;

  bool has(std::uint32_t index) const {
    if (single) return index == begin;
    return index >= begin && (!end || index < *end) && (index - begin) % step == 0;
  }
  // Whether all that it names is there; an open end always is.
  bool fits(std::uint32_t size) const { return begin < size && (!end || *end <= size); }
};

// "2", "0:4", ":4", "4:" or "0:8:2".
bool parse_indices(std::string_view rest, Range& range) {
  const bool has_begin = take_number(rest, range.begin);
  if (!take_character(rest, ':')) {
    range.single = true;
    return has_begin && rest.empty();
  }
  std::uint32_t end = 0;
  if (take_number(rest, end)) range.end = end;
  if (take_character(rest, ':') && (!take_number(rest, range.step) || range.step == 0)) return false;
  return rest.empty() && (!range.end || range.begin < *range.end);
}

using Ranges = std::vector<Range>;

std::variant<Ranges, Complaint> parse_at(std::string_view written) {
  const std::string example = "such as --at replica=2,gpu=0:4, where 0:4 is 0, 1, 2 and 3";
  Ranges ranges;
  std::string_view rest = written;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::size_t equals = part.find('=');
    Range range;
    range.written = part;
    range.dim = part.substr(0, equals);
    if (equals == std::string_view::npos || range.dim.empty() || !parse_indices(part.substr(equals + 1), range)) {
      return malformed(text("--at: `", printable(part), "` is no coordinate"), example);
    }
    const bool again = std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.dim == range.dim; });
    if (again) return malformed(text("--at: the dimension `", printable(range.dim), "` is named twice"), example);
    ranges.push_back(std::move(range));
  }
  return ranges;
}

const Dimension* find_dimension(const MeshSpec& mesh, std::string_view name) {
  const auto found =
      std::find_if(mesh.dims.begin(), mesh.dims.end(), [&](const Dimension& d) { return d.name == name; });
  return found == mesh.dims.end() ? nullptr : &*found;
}

// What of --at the mesh does not have; nothing: it has all of it.
std::optional<Complaint> lacks(const MeshSpec& mesh, const Ranges& ranges) {
  for (const Range& range : ranges) {
    const Dimension* dim = find_dimension(mesh, range.dim);
    if (dim == nullptr) {
      std::vector<std::string> known;
      for (const Dimension& d : mesh.dims) known.push_back(d.name);
      const auto near = nearest(range.dim, known);
      return missing(text("--at: the mesh `", mesh.name, "` has no dimension `", printable(range.dim), "`"),
                     text(near ? text("did you mean `", *near, "`? ") : "", "it has ", dimensions_of(mesh)));
    }
    if (!range.fits(dim->size)) {
      return missing(text("--at ", printable(range.written), ": the mesh `", mesh.name, "` has ", dim->name, "=",
                          indices_of(dim->size)),
                     text("it has ", dimensions_of(mesh)));
    }
  }
  return std::nullopt;
}

std::vector<bool> ranks_at(const MeshSpec& mesh, const Ranges& ranges) {
  std::vector<std::pair<std::size_t, const Range*>> by_dim;
  for (const Range& range : ranges) {
    by_dim.emplace_back(static_cast<std::size_t>(find_dimension(mesh, range.dim) - mesh.dims.data()), &range);
  }
  std::vector<bool> meant(mesh.size(), true);
  for (std::uint32_t rank = 0; rank < meant.size() && !by_dim.empty(); ++rank) {
    const std::vector<std::uint32_t> at = mesh.coordinates_of(Rank(rank));
    meant[rank] = std::all_of(by_dim.begin(), by_dim.end(), [&](const auto& d) { return d.second->has(at[d.first]); });
  }
  return meant;
}

// Which meshes --mesh and --at leave.
std::variant<std::vector<bool>, Complaint> choose_meshes(const SelectorWords& words, const JobSpec& spec,
                                                         const Ranges& ranges) {
  const std::vector<std::string> names = mesh_names(spec);
  std::vector<bool> meant(spec.meshes.size(), true);
  if (words.mesh) {
    const auto found = std::find(names.begin(), names.end(), *words.mesh);
    if (found == names.end()) {
      const auto near = nearest(*words.mesh, names);
      return missing(
          text("--mesh ", printable(*words.mesh), ": the job has no such mesh"),
          near ? text("did you mean `", *near, "`? It has: ", join(names, " ")) : text("one of: ", join(names, " ")));
    }
    std::fill(meant.begin(), meant.end(), false);
    meant[static_cast<std::size_t>(found - names.begin())] = true;
  }
  // Without --mesh, coordinates mean the meshes that have them.
  std::optional<Complaint> first;
  for (std::size_t m = 0; m < meant.size(); ++m) {
    if (!meant[m]) continue;
    auto why = lacks(spec.meshes[m], ranges);
    if (!why) continue;
    meant[m] = false;
    if (!first) first = std::move(why);
  }
  if (first && std::find(meant.begin(), meant.end(), true) == meant.end()) return *first;
  return meant;
}

std::optional<Complaint> check_ranks(const RankList& list, const JobSpec& spec, const std::vector<bool>& meant) {
  const auto count = std::count(meant.begin(), meant.end(), true);
  if (count > 1) {
    return Complaint{.id = "E0922",
                     .message = "--rank counts within a mesh, and the job has more than one",
                     .help = text("name it by --mesh: ", join(mesh_names(spec), " "))};
  }
  const auto mesh = static_cast<std::size_t>(std::find(meant.begin(), meant.end(), true) - meant.begin());
  const std::uint32_t size = spec.meshes[mesh].size();
  if (list.largest() < size) return std::nullopt;
  return missing(text("--rank: there is no rank ", list.largest(), " in the mesh `", spec.meshes[mesh].name, "`"),
                 text("it has ", size == 1 ? "the rank " : "the ranks ", indices_of(size)));
}

std::variant<std::vector<std::string>, Complaint> parse_hosts(const SelectorWords& words, const JobSpec& spec) {
  const std::string& written = *words.hosts;
  auto wanted = expand_hostlist(written);
  if (!wanted.ok()) return malformed(text("--host ", printable(written), ": ", wanted.error().message), "");
  std::vector<std::string> known = words.named;
  for (const PoolHost& host : pool_of(spec)) {
    if (std::find(known.begin(), known.end(), host.name) == known.end()) known.push_back(host.name);
  }
  for (const std::string& host : *wanted) {
    if (std::find(known.begin(), known.end(), host) != known.end()) continue;
    const auto near = nearest(host, known);
    const bool few = known.size() <= kMostHostsShown;
    return missing(text("--host ", printable(host), ": the job has no such host"),
                   near && !few ? text("did you mean `", *near, "`? It has: ", fold_hostlist(known))
                                : text("it has: ", few ? join(known, " ") : fold_hostlist(known)));
  }
  return std::move(*wanted);
}

}  // namespace

std::variant<Selector, Complaint> Selector::parse(const SelectorWords& words, const JobSpec& spec) {
  Selector selector;
  selector.all_ = !words.mesh && !words.at && !words.ranks && !words.hosts && !words.generations;
  selector.by_rank_ = words.at || words.ranks;
  selector.meshes_ = mesh_names(spec);
  selector.mesh_ = words.mesh;
  Ranges ranges;
  if (words.at) {
    auto parsed = parse_at(*words.at);
    if (const auto* wrong = std::get_if<Complaint>(&parsed)) return *wrong;
    ranges = std::move(std::get<Ranges>(parsed));
  }
  const auto chosen = choose_meshes(words, spec, ranges);
  if (const auto* wrong = std::get_if<Complaint>(&chosen)) return *wrong;
  const auto& meant = std::get<std::vector<bool>>(chosen);
  std::optional<RankList> list;
  if (words.ranks) {
    auto parsed = RankList::parse(*words.ranks);
    if (!parsed.ok()) return malformed(text("--rank: ", parsed.error().message), "");
    if (auto wrong = check_ranks(*parsed, spec, meant)) return *wrong;
    list = std::move(*parsed);
  }
  for (std::size_t m = 0; m < spec.meshes.size(); ++m) {
    std::vector<bool> of_mesh = meant[m] ? ranks_at(spec.meshes[m], ranges) : std::vector<bool>(spec.meshes[m].size());
    for (std::uint32_t r = 0; list && r < of_mesh.size(); ++r) of_mesh[r] = of_mesh[r] && list->contains(r);
    selector.ranks_.push_back(std::move(of_mesh));
  }
  const bool any = std::any_of(selector.ranks_.begin(), selector.ranks_.end(), [](const std::vector<bool>& mesh) {
    return std::find(mesh.begin(), mesh.end(), true) != mesh.end();
  });
  if (!any)
    return missing("no rank is selected by both --at and --rank", "monarch plan and monarch status show the ranks");
  if (words.hosts) {
    auto hosts = parse_hosts(words, spec);
    if (const auto* wrong = std::get_if<Complaint>(&hosts)) return *wrong;
    selector.hosts_ = std::move(std::get<std::vector<std::string>>(hosts));
  }
  if (words.generations) {
    auto parsed = RankList::parse(*words.generations);
    if (!parsed.ok() || parsed->contains(0)) {
      return malformed(text("--generation ", printable(*words.generations), ": not a generation, such as 2 or 2-4"),
                       "the first generation of a gang is 1");
    }
    selector.generations_ = std::move(*parsed);
  }
  return selector;
}

bool Selector::has(RankId rank) const {
  if (all_) return true;
  const std::size_t mesh = rank.mesh.value();
  return mesh < ranks_.size() && rank.rank.value() < ranks_[mesh].size() && ranks_[mesh][rank.rank.value()];
}

bool Selector::has_host(std::string_view host) const {
  return hosts_.empty() || std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
}

bool Selector::has_generation(std::uint64_t counter) const {
  return !generations_ || (counter <= UINT32_MAX && generations_->contains(static_cast<std::uint32_t>(counter)));
}

bool Selector::has(const JobEvent& event) const {
  if (all_) return true;
  if (!has_host(event.host) || !has_generation(event.generation)) return false;
  if (!mesh_ && !by_rank_) return true;
  const auto named = std::find(meshes_.begin(), meshes_.end(), event.mesh);
  if (named == meshes_.end()) return false;
  if (!event.rank) return !by_rank_ && *named == *mesh_;
  return has({MeshId(static_cast<std::uint32_t>(named - meshes_.begin())), Rank(*event.rank)});
}

JobStatus selected_part(JobStatus status, const Selector& selector) {
  if (selector.selects_all()) return status;
  std::vector<std::string> hosts;
  std::vector<MeshStatus> meshes;
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    MeshStatus& mesh = status.meshes[m];
    std::erase_if(mesh.ranks, [&](const RankStatus& rank) {
      return !selector.has({MeshId(m), Rank(rank.rank)}, rank.host, rank.generation);
    });
    for (const RankStatus& rank : mesh.ranks) hosts.push_back(rank.host);
    if (!mesh.ranks.empty()) meshes.push_back(std::move(mesh));
  }
  status.meshes = std::move(meshes);
  std::sort(hosts.begin(), hosts.end());
  std::erase_if(status.hosts, [&](const HostStatus& host) {
    return selector.names_hosts() ? !selector.has_host(host.name)
                                  : !std::binary_search(hosts.begin(), hosts.end(), host.name);
  });
  return status;
}

Complaint nothing_selected(const std::string& job_id) {
  return {.id = "E0923",
          .message = text("nothing of ", job_id, " is selected"),
          .help = text("monarch status ", job_id, " shows its ranks, hosts and generations")};
}

}  // namespace monarch
