#pragma once

// LinkDial: a connection to an owner on its way: to his socket, and through the hello. It waits for nothing: who has it
// polls for what it wants, and has a deadline.
//
// Thread: one.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/core/hello.h"
#include "transport/tensor/stream_link.h"

namespace monarch::tensor {

enum class LinkWay : std::uint8_t { kOnMachine, kToHost };

class LinkDial {
 public:
  // The nonce of `ask` is filled in. `row_link`: which of the links for rows it is, 0 for one for words. kGone: nobody
  // listens there, so that process has ended, or is not to be seen from here.
  static Result<std::unique_ptr<LinkDial>> start(const Card& card, LinkWay way, HelloAsk ask,
                                                 std::uint32_t row_link = 0);
  LinkDial(const LinkDial&) = delete;
  LinkDial& operator=(const LinkDial&) = delete;

  int descriptor() const { return stream_ ? stream_->descriptor() : socket_.get(); }
  // For poll(2).
  short events() const;
  // When one of these is there. nullptr: not yet. kGone: nobody is there, or not who was meant. kBusy: he let go, or
  // has no place. kTimeout: he is not reached, or refuses; the message says why.
  Result<std::unique_ptr<StreamLink>> go_on();
  // After kBusy: he has no place for a link now, and may have one in so long.
  std::optional<Duration> again() const { return again_; }
  // Once there is a link: how many for rows he lets one reader have.
  std::uint32_t row_links() const { return row_links_; }

 private:
  LinkDial(UniqueFd socket, HelloAsk ask, std::uint32_t row_link, std::string secret)
      : socket_(std::move(socket)), ask_(std::move(ask)), row_link_(row_link), secret_(std::move(secret)) {}

  Error of_owner(const Error& error) const;
  Error refused(const StreamLink::Received& word);

  UniqueFd socket_;  // while it connects
  const HelloAsk ask_;
  const std::uint32_t row_link_;
  const std::string secret_;
  std::unique_ptr<StreamLink> stream_;  // then
  std::optional<Duration> again_;
  std::uint32_t row_links_ = 1;
};

}  // namespace monarch::tensor
