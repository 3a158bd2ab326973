#pragma once

// Card: how an owner of published memory is reached, as text that posts keep for it and give to readers. It has the
// secret by which both prove to each other that they are of the job, so it is shown nowhere.
//
// Thread: pure functions.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch::tensor {

inline constexpr std::size_t kSecretBytes = 32;

struct Card {
  std::string machine;  // the boot id of the kernel that it runs on
  std::string path;     // of its socket there
  std::string address;  // numeric; empty: it is not reached from elsewhere
  std::uint16_t port = 0;
  std::array<unsigned char, kSecretBytes> secret{};
  bool operator==(const Card&) const = default;
};

std::string card_text(const Card& card);
// The same with another secret, of kSecretBytes: the personal one of who has it (transport/tensor/core/hello.h).
Card with_secret(Card card, std::string_view secret);
// kInvalid: it is none; the message has nothing of it. What a later version has beside it is passed over.
Result<Card> parse_card(std::string_view text);

}  // namespace monarch::tensor
