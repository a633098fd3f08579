// The bytes of a connection that were read and not yet parsed.
//
//   data   [ consumed | readable | writable ]
//                     ^begin     ^end        ^capacity
//
// Sizes: starts without memory, then kBytesFirst, doubles while reads fill it up to `bytes_usual`
// (large reads are what makes ingest fast: one read of 512 KiB with many frames in it carried 609
// million values/s where a read for each header and body carried 286), and beyond only for a frame
// that is larger, again by doubling. So a connection never holds more than twice what it has sent,
// and a header that claims 4 MiB costs nothing by itself.
//
// Thread: one owner.
#ifndef TIDEMARK_SERVER_INGEST_READ_BUFFER_H_
#define TIDEMARK_SERVER_INGEST_READ_BUFFER_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace tidemark::server {

class ReadBuffer {
 public:
  /// What a connection that sends a line now and then needs: ten thousand that are in the middle of
  /// one take 20 MB.
  static constexpr std::size_t kBytesFirst = std::size_t{2} << 10;

  explicit ReadBuffer(std::size_t bytes_usual) : usual_(std::max(bytes_usual, kBytesFirst)) {}

  std::span<const std::byte> readable() const { return {data_.get() + begin_, end_ - begin_}; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return begin_ == end_; }

  void Consume(std::size_t bytes) {
    assert(bytes <= end_ - begin_);
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  /// All of it is what has been read, and not yet parsed.
  bool full() const { return end_ - begin_ == capacity_; }

  /// The capacity that the next read should have. `needed`: how many readable bytes the parser
  /// wants at least.
  std::size_t Wanted(std::size_t needed) const {
    std::size_t wanted = std::max(capacity_, kBytesFirst);
    if (filled_ && capacity_ < usual_) wanted = std::min(capacity_ * 2, usual_);
    if (full() && capacity_ >= kBytesFirst && needed > capacity_) {
      // Full of one frame's beginning.
      wanted = std::max(wanted, std::min(capacity_ * 2, needed));
    }
    if (empty() && capacity_ > usual_) wanted = usual_;  // the large frame is done
    return wanted;
  }

  /// Takes and gives back memory. REQUIRES: room for what is readable. Invalidates readable().
  void Resize(std::size_t capacity) {
    assert(capacity >= end_ - begin_);
    auto other = std::make_unique_for_overwrite<std::byte[]>(capacity);
    std::copy_n(data_.get() + begin_, end_ - begin_, other.get());
    data_ = std::move(other);
    capacity_ = capacity;
    end_ -= begin_;
    begin_ = 0;
  }

  /// Room to read into, never empty. REQUIRES: !full(). Invalidates readable().
  std::span<std::byte> Prepare() {
    if (begin_ > 0) {
      std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    assert(end_ < capacity_);
    return {data_.get() + end_, capacity_ - end_};
  }

  /// `bytes` were read into what Prepare gave.
  void Commit(std::size_t bytes) {
    assert(bytes <= capacity_ - end_);
    end_ += bytes;
    filled_ = end_ == capacity_;
  }

  /// Gives the memory back. REQUIRES: empty().
  void Release() {
    assert(empty());
    data_.reset();
    capacity_ = begin_ = end_ = 0;
    filled_ = false;
  }

 private:
  const std::size_t usual_;
  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool filled_ = false;  // the last read filled the buffer
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_READ_BUFFER_H_
