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
  /// What a connection that sends a line now and then needs.
  static constexpr std::size_t kBytesFirst = std::size_t{16} << 10;

  explicit ReadBuffer(std::size_t bytes_usual) : usual_(std::max(bytes_usual, kBytesFirst)) {}

  std::span<const std::byte> readable() const { return {data_.get() + begin_, end_ - begin_}; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return begin_ == end_; }

  void Consume(std::size_t bytes) {
    assert(bytes <= end_ - begin_);
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  /// Room to read into, never empty. `needed`: how many readable bytes the parser wants at least.
  /// Invalidates readable().
  std::span<std::byte> Prepare(std::size_t needed) {
    std::size_t wanted = std::max(capacity_, kBytesFirst);
    if (filled_ && capacity_ < usual_) wanted = std::min(capacity_ * 2, usual_);
    if (end_ - begin_ == capacity_ && capacity_ >= kBytesFirst && needed > capacity_) {
      // Full of one frame's beginning.
      wanted = std::max(wanted, std::min(capacity_ * 2, needed));
    }
    if (empty() && capacity_ > usual_) wanted = usual_;  // the large frame is done
    if (wanted != capacity_) {
      auto bigger = std::make_unique_for_overwrite<std::byte[]>(wanted);
      std::copy_n(data_.get() + begin_, end_ - begin_, bigger.get());
      data_ = std::move(bigger);
      capacity_ = wanted;
      end_ -= begin_;
      begin_ = 0;
    } else if (begin_ > 0) {
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
