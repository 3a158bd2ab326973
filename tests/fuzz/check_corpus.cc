// Writes the corpus of check_fuzz into the folder given. Run it again when a message is changed: check-corpus
// tests/fuzz/corpus/check
//
// Thread: main, alone.

#include <filesystem>
#include <fstream>
#include <string>

#include "transport/messages/check.h"
#include "transport/messages/strike.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

int main(int argc, char** argv) {
  using namespace monarch;
  if (argc != 2) return 2;
  const std::filesystem::path folder(argv[1]);
  std::filesystem::create_directories(folder);
  const auto write = [&folder](const char* name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  };
  CheckRequest request{.words = {"word", "answer"}, .look = true, .first_door = 20'000, .last_door = 20'010};
  request.calls = {{"h2", "10.0.0.2", 4711}};
  request.folders = {{"storage", "/data", true}};
  request.programs = {{"m", "train", "/tmp", ""}};
  request.write = {{"/data", ".monarch-doctor-1", "of h1"}};
  request.worker = {"0123456789abcdef0123456789abcdef", "h2"};
  request.strike = StrikeOrder{.what = StrikeWhat::kCut,
                               .job_uuid = "0123456789abcdef0123456789abcdef",
                               .host = "h2",
                               .address = "10.0.0.1",
                               .ports = {4711, 4712},
                               .percent = 10,
                               .size = 1U << 20U,
                               .supervisor_pid = 4711,
                               .job_directory = "/home/alice/.local/state/monarch/jobs/demo-1a2b"};
  HostFacts facts{.version = "0.1.0", .kernel = "6.1", .machine = "x86_64", .user = "alice", .files = {1024, 4096}};
  facts.ptrace_scope = 1;
  facts.places = {{.name = "state and logs", .path = "/home/alice", .there = true, .free_bytes = 1}};
  facts.inventory = {.cpus = 8, .gpus = {{0, "GPU-a"}}};
  facts.rdma = {{"mlx5_0:1", "ACTIVE", "Ethernet", "400 Gb/sec"}};
  facts.interfaces = {{"eth0", "10.0.0.1", 1500}};
  facts.orphans = {{.job_uuid = "ab", .host = "h1", .pids = {1, 2}, .program = "sleep"}};
  CheckAnswer answer{.received = WallTime{1}, .answered = WallTime{2}, .facts = facts, .door = 4000};
  answer.calls = {{{"h2", "10.0.0.2", 4711}, "refused"}};
  answer.read = {{"/data", "of h1", ""}};
  answer.worker = {1, 0, 4};
  answer.struck = {"no daemon of the job is on this host", {17}, WallTime{3}, WallTime{4}, true};
  const std::string one = encode_piece(encode_payload(request));
  const std::string other = encode_piece(encode_payload(answer));
  write("request", one);
  write("answer", other);
  write("both", one + other);
  write("cut", other.substr(0, other.size() / 2));
  write("empty", encode_piece("") + encode_piece(""));
  write("not_a_length", "Welcome to the machine\n");
  write("too_long", "1048577\n");
  write("longer_than_it_is", "7\nabc");
  return 0;
}
