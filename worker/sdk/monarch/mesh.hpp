#pragma once

// Meshes as a program sees them: an array of ranks with named dimensions, and views of it. A rank's number is its
// row-major index over the dimensions, the last of which changes fastest.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/codec.hpp>
#include <monarch/signature.hpp>

namespace monarch {

// What is given to a function of ours and cannot be meant.
class MONARCH_INSIDE BadArguments : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Users hold these as members, so they are visible where their own types are.
struct MONARCH_SEEN Dimension {
  std::string name;
  std::uint32_t size = 1;
  bool operator==(const Dimension&) const = default;
};
MONARCH_FIELDS(Dimension, name, size)

// One number for each dimension of a mesh. A class of ours, so that to_string() of it is found.
class MONARCH_SEEN Coordinates {
 public:
  Coordinates() = default;
  explicit Coordinates(std::vector<std::uint32_t> at) : at_(std::move(at)) {}
  // Of the rank with this number in a mesh of these dimensions.
  static Coordinates of(std::uint32_t rank, const std::vector<Dimension>& dims) {
    std::vector<std::uint32_t> at(dims.size());
    for (std::size_t i = dims.size(); i-- > 0; rank /= dims[i].size) at[i] = rank % dims[i].size;
    return Coordinates(std::move(at));
  }
  std::size_t size() const { return at_.size(); }
  std::uint32_t operator[](std::size_t dim) const { return at_.at(dim); }
  bool operator==(const Coordinates&) const = default;

 private:
  std::vector<std::uint32_t> at_;
};

// "(1,3)"
inline MONARCH_INSIDE std::string to_string(const Coordinates& coordinates) {
  std::string text = "(";
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(coordinates[i]);
  }
  return text + ")";
}

// Some ranks of a mesh, as an array of their own: each dimension of a view is a range of one of the mesh's. Cutting is
// arithmetic; nothing is sent.
class MONARCH_SEEN View {
 public:
  View() = default;
  // The whole mesh.
  View(std::string mesh, const std::vector<Dimension>& dims) : mesh_(std::move(mesh)) {
    std::uint32_t stride = 1;
    axes_.resize(dims.size());
    for (std::size_t i = dims.size(); i-- > 0; stride *= dims[i].size) {
      axes_[i] = {.name = dims[i].name, .size = dims[i].size, .stride = stride};
    }
  }

  const std::string& mesh() const { return mesh_; }
  // How many ranks.
  std::size_t size() const {
    std::size_t ranks = 1;
    for (const Axis& axis : axes_) ranks *= axis.size;
    return ranks;
  }
  std::vector<Dimension> dims() const {
    std::vector<Dimension> dims;
    for (const Axis& axis : axes_) dims.push_back({.name = axis.name, .size = axis.size});
    return dims;
  }

  // Those with `from` <= index < `to` in that dimension, of these every `step`-th; the dimension stays.
  View slice(std::string_view dim, std::uint32_t from, std::uint32_t to, std::uint32_t step = 1) const {
    View cut = *this;
    Axis& axis = cut.axis(dim);
    if (from >= to || to > axis.size || step == 0) {
      throw BadArguments("slice " + std::to_string(from) + " to " + std::to_string(to) + " by " + std::to_string(step) +
                         " of " + mesh_ + ": `" + axis.name + "` has " + std::to_string(axis.size));
    }
    cut.first_ += from * axis.stride;
    axis.size = (to - from + step - 1) / step;
    axis.stride *= step;
    return cut;
  }
  // Those with this index in that dimension, which is no dimension of the view any more.
  View at(std::string_view dim, std::uint32_t index) const {
    View cut = *this;
    const Axis& axis = cut.axis(dim);
    if (index >= axis.size) {
      throw BadArguments(mesh_ + " has no " + std::to_string(index) + " in `" + axis.name + "`, which has " +
                         std::to_string(axis.size));
    }
    cut.first_ += index * axis.stride;
    cut.axes_.erase(cut.axes_.begin() + (&axis - cut.axes_.data()));
    return cut;
  }
  // The one rank with this place among those of the view.
  View only(std::size_t place) const {
    View one = *this;
    one.first_ = rank(place);
    one.axes_.clear();
    return one;
  }

  // The number within the mesh of the rank with this place among those of the view, row-major.
  std::uint32_t rank(std::size_t place) const {
    std::uint32_t number = first_;
    for (std::size_t i = axes_.size(); i-- > 0; place /= axes_[i].size) {
      number += static_cast<std::uint32_t>(place % axes_[i].size) * axes_[i].stride;
    }
    return number;
  }
  // All of them, as few runs as can be.
  std::vector<monarch_ranks_v1> ranks() const {
    std::vector<monarch_ranks_v1> runs;
    const std::size_t count = size();
    for (std::size_t place = 0; place < count; ++place) {
      const std::uint32_t next = rank(place);
      if (!runs.empty() && runs.back().count == 1 && next > runs.back().first) {
        runs.back().step = next - runs.back().first;
        runs.back().count = 2;
      } else if (!runs.empty() && runs.back().count > 1 &&
                 next == runs.back().first + runs.back().count * runs.back().step) {
        ++runs.back().count;
      } else {
        runs.push_back({.first = next, .count = 1, .step = 1});
      }
    }
    return runs;
  }
  bool operator==(const View&) const = default;

  MONARCH_FIELDS_INSIDE(mesh_, first_, axes_)

 private:
  struct Axis {
    std::string name;
    std::uint32_t size = 1;
    std::uint32_t stride = 1;  // between the numbers of ranks that are neighbours in it
    bool operator==(const Axis&) const = default;
    MONARCH_FIELDS_INSIDE(name, size, stride)
  };

  Axis& axis(std::string_view name) {
    std::string known;
    for (Axis& axis : axes_) {
      if (axis.name == name) return axis;
      known += (known.empty() ? "" : ", ") + axis.name;
    }
    throw BadArguments("this view of " + mesh_ + " has no dimension `" + std::string(name) + "`; it has " +
                       (known.empty() ? "none" : known));
  }

  std::string mesh_;
  std::uint32_t first_ = 0;
  std::vector<Axis> axes_;
};

// Where an actor or a controller is, and which start of its rank it belongs to.
struct MONARCH_SEEN Context {
  std::string mesh;
  std::string actor;  // of a controller: empty
  std::string host;
  std::uint32_t rank = 0;  // within the mesh
  std::uint64_t generation = 1;
  std::string why_restarted;  // may be empty
  std::vector<Dimension> dims;

  Coordinates coordinates() const { return Coordinates::of(rank, dims); }
};

inline namespace v1 MONARCH_INSIDE {

inline Context context_of(const monarch_place_v1& place) {
  Context context;
  context.mesh = place.mesh;
  context.actor = place.actor;
  context.host = place.host;
  context.rank = place.rank;
  context.generation = place.generation;
  context.why_restarted = place.why_restarted;
  for (std::uint32_t i = 0; i < place.dim_count; ++i) {
    context.dims.push_back({.name = place.dim_names[i], .size = place.dim_sizes[i]});
  }
  return context;
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
