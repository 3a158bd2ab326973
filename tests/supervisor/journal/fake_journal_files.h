#pragma once

// A directory in memory that knows what is on disk and what is only in the page cache, and fails when it is told to.
//
// Thread: any; one lock around all of it.

#include <cerrno>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/journal/journal_files.h"

namespace monarch::testing {

enum class Call { kCreate, kWrite, kSync, kRename, kRemove, kSyncDirectory };

// What is left of the page cache after a crash.
enum class DataLeft { kSyncedOnly, kHalf, kAll };
enum class NamesLeft { kSyncedOnly, kAll };

class FakeJournalFiles final : public JournalFiles {
 public:
  struct Inode {
    std::string bytes;
    std::size_t synced = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;  // shared by names, open files and the synced names

  // The errno for the call with this number, or 0. Set by the test.
  std::function<Errno(Call, const std::string& name)> fault = [](Call, const std::string&) { return 0; };
  // Of a write that fails, how much reaches the file nevertheless.
  std::size_t bytes_before_fault = 0;

  Errno create(const std::string& name, std::unique_ptr<JournalFile>& file) override {
    const std::lock_guard lock(mutex_);
    if (const Errno failure = called(Call::kCreate, name)) return failure;
    if (names_.contains(name)) return EEXIST;
    auto inode = std::make_shared<Inode>();
    names_[name] = inode;
    file = std::make_unique<File>(*this, name, inode);
    return 0;
  }
  Errno open(const std::string& name, std::unique_ptr<JournalFile>& file) override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    if (found == names_.end()) return ENOENT;
    file = std::make_unique<File>(*this, name, found->second);
    return 0;
  }
  // One after the other, so that a crash at a call is one after some of them.
  std::vector<Errno> sync_all(const std::vector<JournalFile*>& files) override {
    std::vector<Errno> answers;
    for (JournalFile* file : files) answers.push_back(file->sync());
    return answers;
  }
  Errno rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (const Errno failure = called(Call::kRename, to)) return failure;
    const auto found = names_.find(from);
    if (found == names_.end()) return ENOENT;
    names_[to] = found->second;
    names_.erase(from);
    return 0;
  }
  Errno remove(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    if (const Errno failure = called(Call::kRemove, name)) return failure;
    return names_.erase(name) == 0 ? ENOENT : 0;
  }
  Errno sync_directory() override {
    const std::lock_guard lock(mutex_);
    if (const Errno failure = called(Call::kSyncDirectory, "")) return failure;
    synced_names_ = names_;
    return 0;
  }
  bool deleted() override {
    const std::lock_guard lock(mutex_);
    return deleted_;
  }
  Result<std::vector<std::string>> list() override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [name, inode] : names_) all.push_back(name);
    return all;
  }
  Result<std::string> read(const std::string& name, std::uint64_t offset, std::size_t limit) override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    if (found == names_.end()) return Error{ErrorCode::kNotFound, name};
    const std::string& bytes = found->second->bytes;
    return offset >= bytes.size() ? std::string() : bytes.substr(static_cast<std::size_t>(offset), limit);
  }

  std::size_t calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  // From the call with this number on (the first is 0), nothing happens any more: the process is dead.
  void die_at(std::size_t call) { dead_from_ = call; }
  void set_deleted() {
    const std::lock_guard lock(mutex_);
    deleted_ = true;
  }
  // While held, a sync does not return.
  void hold_syncs(bool held) {
    {
      const std::lock_guard lock(mutex_);
      syncs_held_ = held;
    }
    released_.notify_all();
  }
  std::string& bytes_of(const std::string& name) { return names_.at(name)->bytes; }
  const Names& names() const { return names_; }

  // The directory as the next process finds it.
  std::unique_ptr<FakeJournalFiles> after_crash(DataLeft data, NamesLeft which) const {
    auto left = std::make_unique<FakeJournalFiles>();
    for (const auto& [name, inode] : which == NamesLeft::kAll ? names_ : synced_names_) {
      auto copy = std::make_shared<Inode>(*inode);
      const std::size_t unsynced = copy->bytes.size() - copy->synced;
      if (data == DataLeft::kSyncedOnly) copy->bytes.resize(copy->synced);
      if (data == DataLeft::kHalf) copy->bytes.resize(copy->synced + unsynced / 2);
      copy->synced = copy->bytes.size();
      left->names_[name] = copy;
    }
    left->synced_names_ = left->names_;
    return left;
  }

 private:
  class File final : public JournalFile {
   public:
    File(FakeJournalFiles& files, std::string name, std::shared_ptr<Inode> inode)
        : files_(files), name_(std::move(name)), inode_(std::move(inode)) {}
    Errno write(std::string_view bytes) override {
      const std::lock_guard lock(files_.mutex_);
      const Errno failure = files_.called(Call::kWrite, name_);
      if (failure == 0) inode_->bytes.append(bytes);
      if (failure != 0 && !files_.dead()) inode_->bytes.append(bytes.substr(0, files_.bytes_before_fault));
      return failure;
    }
    Errno sync() override {
      std::unique_lock lock(files_.mutex_);
      files_.released_.wait(lock, [this] { return !files_.syncs_held_; });
      if (const Errno failure = files_.called(Call::kSync, name_)) return failure;
      inode_->synced = inode_->bytes.size();
      return 0;
    }
    bool deleted() override { return false; }

   private:
    FakeJournalFiles& files_;
    std::string name_;
    std::shared_ptr<Inode> inode_;  // with the directory
  };

  bool dead() const { return dead_from_ && calls_ > *dead_from_; }
  Errno called(Call call, const std::string& name) {
    ++calls_;
    return dead() ? EIO : fault(call, name);
  }

  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool syncs_held_ = false;
  bool deleted_ = false;
  std::size_t calls_ = 0;
  std::optional<std::size_t> dead_from_;
  Names names_;
  Names synced_names_;
};

}  // namespace monarch::testing
