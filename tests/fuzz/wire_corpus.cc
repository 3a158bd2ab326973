// Writes the corpus of wire_fuzz into the folder given: for each message a frame with random values (fixed seeds), one
// cut short, one with a field of the future, and frames whose first length says 0, 1 and the most; and SEQPACKET
// messages. Run it again when a message is added: wire-corpus tests/fuzz/corpus/wire
//
// Thread: main, alone.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "tests/transport/wire/every_message.h"
#include "transport/base/limits.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_message.h"

namespace monarch {
namespace {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }

  void add(const std::string& name, std::string_view bytes) {
    std::ofstream file(folder_ / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    good_ = good_ && file.good();
  }
  bool good() const { return good_; }

 private:
  std::filesystem::path folder_;
  bool good_ = true;
};

Frame frame_of(std::size_t index, std::string payload) {
  Frame frame{.header = {.type = static_cast<std::uint16_t>(index), .term = Term(3), .seq = 7, .call = 1},
              .payload = std::move(payload)};
  for (std::size_t i = 0; i < frame.header.job.bytes.size(); ++i) {
    frame.header.job.bytes[i] = static_cast<std::uint8_t>(i);
  }
  return frame;
}

// Arrays and maps of `length` in each form, then what a decoder would read as their first items.
void add_lengths(Corpus& corpus, const std::string& name, std::size_t index, const std::string& payload) {
  const std::string body = payload.substr(1);
  const std::pair<const char*, std::string> heads[] = {
      {"0", "\x90"},
      {"1", "\x91"},
      {"16bit-0", std::string("\xdc\0\0", 3)},
      {"16bit-most", "\xdc\xff\xff"},
      {"32bit-0", std::string("\xdd\0\0\0\0", 5)},
      {"32bit-most", "\xdd\xff\xff\xff\xff"},
      {"map-most", "\xdf\xff\xff\xff\xff"},
  };
  for (const auto& [length, head] : heads) {
    corpus.add(name + "-length-" + length, encode_frame(frame_of(index, head + body)));
  }
}

void add_message(Corpus& corpus, std::size_t index) {
  const std::string name = every_message()[index].name;
  const std::string payload = every_message()[index].arbitrary(index + 1);
  const Frame frame = frame_of(index, payload);
  corpus.add(name, encode_frame(frame));
  corpus.add(name + "-cut", encode_frame(frame_of(index, payload.substr(0, payload.size() / 2))));
  corpus.add(name + "-empty", encode_frame(frame_of(index, "")));
  const auto packed = pack_message(frame, {}, limits::kSeqpacketInlineBytes);
  if (packed.ok()) corpus.add(name + "-seqpacket", packed->bytes);
  // Every message has fewer than 16 fields, so its array's length is in its first byte.
  if ((static_cast<unsigned char>(payload[0]) & 0xf0U) != 0x90) return;
  std::string future = payload + std::string("\x81\xa1k\xd4\x01\x02", 6);
  future[0] = static_cast<char>(future[0] + 1);
  corpus.add(name + "-future", encode_frame(frame_of(index, future)));
  add_lengths(corpus, name, index, payload);
}

// Values whose own lengths are at their edges: strings and byte strings in a message that is one string.
void add_strings(Corpus& corpus) {
  for (std::size_t index = 0; index < every_message().size(); ++index) {
    if (std::string_view(every_message()[index].name) != "shutdown") continue;
    for (const std::string& head :
         {std::string("\xa0"), std::string("\xa1"), std::string("\xbf"), std::string("\xd9\xff"),
          std::string("\xda\xff\xff"), std::string("\xdb\xff\xff\xff\xff"), std::string("\xdb\0\0\0\0", 5),
          std::string("\xdb\0\0\0\1", 5), std::string("\xc6\xff\xff\xff\xff"), std::string("\xc9\xff\xff\xff\xff\1")}) {
      corpus.add("string-" + to_hex(head), encode_frame(frame_of(index, "\x91" + head + "x")));
    }
  }
}

void add_broken_headers(Corpus& corpus) {
  const std::string frame = encode_frame(frame_of(0, "\x90"));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kFrameHeaderBytes - 1, kFrameHeaderBytes}) {
    corpus.add("header-cut-" + std::to_string(size), frame.substr(0, size));
  }
  std::string other = frame;
  other[0] = 'M';
  corpus.add("header-magic", other);
  other = frame;
  other[4] = 2;
  corpus.add("header-version", other);
  for (const auto& [name, envelope] : {std::pair<const char*, std::string>{"memfd", std::string("\1\0\0\0\4\0\0\0", 8)},
                                       {"length-most", std::string("\0\0\0\0\xff\xff\xff\xff", 8)},
                                       {"length-0", std::string("\0\0\0\0\0\0\0\0", 8)},
                                       {"descriptors", std::string("\0\xff\0\0\1\0\0\0", 8)},
                                       {"reserved", std::string("\0\0\1\0\1\0\0\0", 8)}}) {
    corpus.add(std::string("envelope-") + name, envelope + frame);
  }
}

}  // namespace
}  // namespace monarch

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: wire-corpus FOLDER\n");
    return 2;
  }
  monarch::Corpus corpus(argv[1]);
  for (std::size_t index = 0; index < monarch::every_message().size(); ++index) monarch::add_message(corpus, index);
  monarch::add_strings(corpus);
  monarch::add_broken_headers(corpus);
  return corpus.good() ? 0 : 1;
}
