#include "supervisor/core/state/past_places.h"

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"

namespace monarch {

void note_place(std::vector<PastPlace>& places, Generation generation, std::vector<HostId> hosts) {
  MONARCH_ASSERT_BECAUSE(places.empty() || places.back().first < generation, "I4: generations of a gang only grow");
  if (!places.empty() && places.back().hosts == hosts) return;
  if (places.size() == kPlacesKept) places.erase(places.begin());
  places.push_back({.first = generation, .hosts = std::move(hosts)});
}

bool ran_on(const std::vector<PastPlace>& places, Generation generation, std::size_t index, HostId where) {
  const auto after = std::upper_bound(places.begin(), places.end(), generation,
                                      [](Generation of, const PastPlace& place) { return of < place.first; });
  if (after == places.begin()) return false;
  const PastPlace& place = *std::prev(after);
  return index < place.hosts.size() && place.hosts[index] == where;
}

}  // namespace monarch
