// Runs a fuzz target without libFuzzer: each file of the corpus as it is, then mutations of them
// from a fixed seed for two seconds. Prints seed and executions; a failing input is left in a file.
//
//   NAME_smoke CORPUS [SECONDS [SEED]]
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kInputBytesMax = 4096;

std::string current;       // the input being run, for the handler
std::string failure_path;  // where it goes

// Only what a signal handler may do, but for the buffered write of a dying process.
void OnAbort(int) {
  if (FILE* file = std::fopen(failure_path.c_str(), "wb"); file != nullptr) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "the failing input is in %s\n", failure_path.c_str());
}

void Run(const std::string& input) {
  current = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

std::string Mutate(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string text = corpus[random() % corpus.size()];
  for (std::uint64_t i = 1 + random() % 6; i > 0; --i) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 7) {
      case 0:  // a bit
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      case 1:  // a byte
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 2:  // a byte that matters to some parser
        text.insert(at, 1, "\0\xFF\x80|:@#,{}+-.\n0 9e\"\\"[random() % 20]);
        break;
      case 3:  // cut
        text.erase(at, random() % 16);
        break;
      case 4: {  // a piece of another
        const std::string& other = corpus[random() % corpus.size()];
        if (!other.empty()) text.insert(at, other, random() % other.size(), random() % 64);
        break;
      }
      case 5:  // a piece of itself again
        if (!text.empty()) text.insert(at, text.substr(random() % text.size(), random() % 32));
        break;
      default:  // the end
        text.resize(at);
        break;
    }
  }
  if (text.size() > kInputBytesMax) text.resize(kInputBytesMax);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [SECONDS [SEED]]\n", argv[0]);
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 20061105;
  failure_path = std::filesystem::path(argv[0]).filename().string() + ".failed";
  std::signal(SIGABRT, OnAbort);

  std::vector<std::string> corpus;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(argv[1], none)) {
    std::ifstream in(file.path(), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus in %s\n", argv[0], argv[1]);
    return 2;
  }
  Run("");
  for (const std::string& input : corpus) Run(input);
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t executions = corpus.size() + 1;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 64; ++i, ++executions) Run(Mutate(corpus, random));
  }
  std::printf("seed %llu: %llu executions, no failure\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(executions));
  return 0;
}
