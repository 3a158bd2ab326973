// The actors of configs/parameter_server.yaml: softmax regression on Fisher's irises, by asynchronous gradient descent.

#include <monarch/controller.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

constexpr std::size_t kKinds = 3;
constexpr std::size_t kInputs = 5;  // four measures and a 1
constexpr std::size_t kWeights = kKinds * kInputs;
using Weights = std::vector<double>;  // [kind][input], or a part of that

// Holds a shard of the weights: of w those with w % shards == its rank.
class Server : public monarch::Actor {
 public:
  explicit Server(const monarch::Args& args) : rate_(args.get<double>("rate")) {
    const std::size_t shards = context().dims.front().size;
    for (std::size_t w = context().rank; w < kWeights; w += shards) shard_.push_back(0);
  }
  Weights pull() const { return shard_; }
  void push(const Weights& gradient) {
    for (std::size_t i = 0; i < shard_.size(); ++i) shard_[i] -= rate_ * gradient.at(i);
  }

 private:
  double rate_;
  Weights shard_;
};
using Servers = monarch::ActorMesh<Server>;

class Worker : public monarch::Actor {
 public:
  explicit Worker(const monarch::Args& args) {
    const auto path = args.get<std::string>("data");
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + " cannot be read");
    std::size_t workers = 1;
    for (const monarch::Dimension& dim : context().dims) workers *= dim.size;
    std::size_t number = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with('#')) continue;
      Row row;
      std::istringstream words(line);
      for (std::size_t i = 0; i + 1 < kInputs; ++i) words >> row.inputs[i];
      words >> row.kind;
      if (!words || row.kind >= kKinds) {
        throw std::runtime_error(std::string(path).append(": `").append(line).append("` is no row"));
      }
      for (double& input : row.inputs) input /= 30;
      row.inputs.back() = 1;
      if (number++ % workers == context().rank) rows_.push_back(row);
    }
  }

  void train(const Servers& servers, int steps) {
    for (int step = 0; step < steps; ++step) {
      const Weights weights = pull(servers);
      Weights gradient(kWeights);
      for (const Row& row : rows_) {
        const auto chances = predict(weights, row);
        for (std::size_t w = 0; w < kWeights; ++w) {
          const std::size_t kind = w / kInputs;
          const double wrong = chances[kind] - (kind == row.kind ? 1 : 0);
          gradient[w] += wrong * row.inputs[w % kInputs] / static_cast<double>(rows_.size());
        }
      }
      std::vector<Weights> shards(servers.size());
      for (std::size_t w = 0; w < kWeights; ++w) shards[w % shards.size()].push_back(gradient[w]);
      (void)servers.scatter<&Server::push>(shards).get();
    }
  }
  // How many it knows, of how many.
  std::pair<int, int> score(const Servers& servers) {
    const Weights weights = pull(servers);
    const auto knows = [&](const Row& row) {
      const auto chances = predict(weights, row);
      return std::max_element(chances.begin(), chances.end()) - chances.begin() ==
             static_cast<std::ptrdiff_t>(row.kind);
    };
    return {static_cast<int>(std::count_if(rows_.begin(), rows_.end(), knows)), static_cast<int>(rows_.size())};
  }

 private:
  struct Row {
    std::array<double, kInputs> inputs{};
    std::size_t kind = 0;
  };
  static Weights pull(const Servers& servers) {
    Weights weights(kWeights);
    for (const auto& [rank, shard] : servers.call<&Server::pull>().get()) {
      for (std::size_t i = 0; i < shard.size(); ++i) weights[rank + i * servers.size()] = shard[i];
    }
    return weights;
  }
  static std::array<double, kKinds> predict(const Weights& weights, const Row& row) {
    std::array<double, kKinds> chances{};
    double sum = 0;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      double score = 0;
      for (std::size_t i = 0; i < kInputs; ++i) score += weights[kind * kInputs + i] * row.inputs[i];
      sum += chances[kind] = std::exp(score);
    }
    for (double& chance : chances) chance /= sum;
    return chances;
  }

  std::vector<Row> rows_;
};

int train(monarch::Controller& c) {
  const auto servers = c.mesh("servers").actors<Server>("server").within(5s);
  const auto workers = c.mesh("workers").actors<Worker>("worker").within(60s);
  const auto rounds = c.args().get<int>("rounds");
  const auto steps = c.args().get<int>("steps");
  std::pair<int, int> known;
  for (int round = 1; round <= rounds; ++round) {
    (void)workers.call<&Worker::train>(servers, steps).get();
    known = workers.fold<&Worker::score>(
        std::pair<int, int>{},
        [](auto sum, auto part) { return std::pair(sum.first + part.first, sum.second + part.second); }, servers);
    std::cout << "after " << round * steps << " steps of each worker: " << known.first << " of " << known.second
              << " are known\n";
  }
  return known.first * 100 >= known.second * 94 ? 0 : 1;
}

MONARCH_PLUGIN(MONARCH_ACTOR(Server, &Server::pull, &Server::push),
               MONARCH_ACTOR(Worker, &Worker::train, &Worker::score))
MONARCH_CONTROLLER(train)
