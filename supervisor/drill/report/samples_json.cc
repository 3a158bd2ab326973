// Samples in columns. Words, which change seldom, are written where they do: [[0,["running"]],[31,["starting"]]].

#include <algorithm>
#include <string>
#include <utility>

#include "supervisor/drill/report/columns.h"
#include "supervisor/drill/report/record_json.h"

namespace monarch::drill {

namespace {

template <class Value>
Json column_json(const std::vector<DrillSample>& samples, Value value) {
  ColumnWriter column;
  for (const DrillSample& sample : samples) column.add(value(sample));
  return Json(column.done());
}

Json words_json(const std::vector<std::string>& words) {
  Json all = Json::array();
  for (const std::string& word : words) all.append(word);
  return all;
}

// A list of words wherever it is another one.
template <class Words>
Json changes_json(const std::vector<DrillSample>& samples, Words words) {
  Json changes = Json::array();
  std::vector<std::string> before;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::vector<std::string> now = words(samples[i]);
    if (now == before) continue;
    Json change = Json::array();
    change.append(i).append(words_json(now));
    changes.append(std::move(change));
    before = std::move(now);
  }
  return changes;
}

const DrillSample::Mesh* mesh_at(const DrillSample& sample, std::size_t mesh) {
  return mesh < sample.meshes.size() ? &sample.meshes[mesh] : nullptr;
}

Json mesh_columns(const std::vector<DrillSample>& samples, std::size_t mesh) {
  std::size_t gangs = 0;
  std::vector<std::string> bins;
  for (const DrillSample& sample : samples) {
    const DrillSample::Mesh* const one = mesh_at(sample, mesh);
    if (one == nullptr) continue;
    gangs = std::max(gangs, one->steps.size());
    for (const auto& [bin, spent] : one->rank_milliseconds) {
      if (std::find(bins.begin(), bins.end(), bin) == bins.end()) bins.push_back(bin);
    }
  }
  Json steps = Json::array();
  for (std::size_t g = 0; g < gangs; ++g) {
    steps.append(column_json(samples, [mesh, g](const DrillSample& sample) -> ColumnValue {
      const DrillSample::Mesh* const one = mesh_at(sample, mesh);
      if (one == nullptr || g >= one->steps.size() || !one->steps[g]) return std::nullopt;
      return static_cast<std::int64_t>(std::min<std::uint64_t>(*one->steps[g], kMostValue));
    }));
  }
  Json spent = Json::object();
  for (const std::string& bin : bins) {
    spent.set(bin, column_json(samples, [mesh, &bin](const DrillSample& sample) -> ColumnValue {
                const DrillSample::Mesh* const one = mesh_at(sample, mesh);
                if (one == nullptr) return std::nullopt;
                for (const auto& part : one->rank_milliseconds) {
                  if (part.first == bin) return part.second;
                }
                return std::nullopt;
              }));
  }
  Json phases = changes_json(samples, [mesh](const DrillSample& sample) {
    const DrillSample::Mesh* const one = mesh_at(sample, mesh);
    return one == nullptr ? std::vector<std::string>() : one->phases;
  });
  return Json::object(
      {{"steps", std::move(steps)}, {"rank_milliseconds", std::move(spent)}, {"phases", std::move(phases)}});
}

std::vector<std::string> words_of_hosts(const DrillSample& sample) {
  std::vector<std::string> words;
  for (const auto& [name, phase] : sample.hosts) {
    words.push_back(name);
    words.push_back(phase);
  }
  return words;
}

// Reads what the others have written, into samples that are there already.
class SamplesReader {
 public:
  SamplesReader(const Json& json, std::vector<DrillSample>& samples) : json_(json), samples_(samples) {}

  bool all() {
    const bool times = column(json_.find("at"), [](DrillSample& sample, ColumnValue value) {
      // In whole milliseconds, so that they fit.
      sample.at = WallTime{value.value_or(0) * 1'000'000};
      return value && *value >= 0 && *value <= kMostTime / 1'000'000;
    });
    const bool spares = column(json_.find("spares"), [](DrillSample& sample, ColumnValue value) {
      sample.spares = static_cast<std::uint32_t>(value.value_or(0));
      return value && *value >= 0 && *value <= std::int64_t{kMostRanks};
    });
    const bool hosts = changes(json_.find("hosts"), [](DrillSample& sample, const std::vector<std::string>& words) {
      for (std::size_t i = 0; i + 1 < words.size(); i += 2) sample.hosts.emplace_back(words[i], words[i + 1]);
    });
    return times && spares && hosts && meshes();
  }

 private:
  template <class Take>
  bool column(const Json* json, Take take) {
    if (json == nullptr) return false;
    const auto values = read_column(*json, samples_.size());
    if (!values) return false;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (!take(samples_[i], (*values)[i])) return false;
    }
    return true;
  }

  template <class Take>
  bool changes(const Json* json, Take take) {
    if (json == nullptr || !json->is_array()) return false;
    std::size_t next = 0;
    std::vector<std::string> now;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (next < json->items().size() && json->items()[next].items().size() == 2) {
        const auto& change = json->items()[next].items();
        if (change[0].as_uint64() == std::optional<std::uint64_t>(i)) {
          ++next;
          now.clear();
          for (const Json& word : change[1].items()) now.push_back(word.as_string().value_or(""));
        }
      }
      words_ += now.size();
      if (words_ > kMostSampleValues) return false;
      take(samples_[i], now);
    }
    return next == json->items().size();
  }

  bool meshes() {
    const Json* const all = json_.find("meshes");
    if (all == nullptr || !all->is_array() || all->items().size() > kMostMeshes) return false;
    if (all->items().size() * samples_.size() > kMostSampleValues) return false;
    for (DrillSample& sample : samples_) sample.meshes.resize(all->items().size());
    for (std::size_t m = 0; m < all->items().size(); ++m) {
      if (!mesh(all->items()[m], m)) return false;
    }
    return true;
  }

  bool mesh(const Json& json, std::size_t m) {
    const Json* const steps = json.find("steps");
    const Json* const spent = json.find("rank_milliseconds");
    if (steps == nullptr || spent == nullptr) return false;
    values_ += (steps->items().size() + spent->members().size()) * samples_.size();
    if (values_ > kMostSampleValues) return false;
    for (const Json& one : steps->items()) {
      const bool good = column(&one, [m](DrillSample& sample, ColumnValue value) {
        sample.meshes[m].steps.emplace_back();
        if (value) sample.meshes[m].steps.back() = static_cast<std::uint64_t>(*value);
        return !value || *value >= 0;
      });
      if (!good) return false;
    }
    for (const auto& part : spent->members()) {
      const bool good = column(&part.second, [m, &part](DrillSample& sample, ColumnValue value) {
        if (value) sample.meshes[m].rank_milliseconds.emplace_back(part.first, *value);
        return !value || *value >= 0;
      });
      if (!good) return false;
    }
    return changes(json.find("phases"), [m](DrillSample& sample, const std::vector<std::string>& words) {
      sample.meshes[m].phases = words;
    });
  }

  const Json& json_;
  std::vector<DrillSample>& samples_;
  std::size_t values_ = 0;
  std::size_t words_ = 0;
};

}  // namespace

Json samples_json(const std::vector<DrillSample>& samples) {
  std::size_t meshes = 0;
  for (const DrillSample& sample : samples) meshes = std::max(meshes, sample.meshes.size());
  Json all = Json::array();
  for (std::size_t m = 0; m < meshes; ++m) all.append(mesh_columns(samples, m));
  return Json::object(
      {{"n", samples.size()},
       {"at", column_json(samples, [](const DrillSample& s) { return s.at.nanoseconds_since_epoch / 1'000'000; })},
       {"spares", column_json(samples, [](const DrillSample& s) { return std::int64_t{s.spares}; })},
       {"hosts", changes_json(samples, words_of_hosts)},
       {"meshes", std::move(all)}});
}

Result<std::vector<DrillSample>> read_samples(const Json& json, std::size_t gangs) {
  const auto many = json.get_uint64("n");
  const bool fits = many && *many <= kMostSamples && (gangs + 1) * *many <= kMostSampleValues;
  if (!fits) return Error{ErrorCode::kInvalid, "samples.n is no number, or too large"};
  std::vector<DrillSample> samples(static_cast<std::size_t>(*many));
  SamplesReader reader(json, samples);
  if (!reader.all()) return Error{ErrorCode::kInvalid, "samples: a column is missing, cut short or no column"};
  return samples;
}

}  // namespace monarch::drill
