// Runs and samples of sorted windows, four channels at once (gpu/reduce/gl_compute_reducer.h). The
// program's maker puts before this text "#version 430 core" and the defines KEY_WORDS (1 or 2),
// INVOCATIONS (a power of two), PER_INVOCATION, and STAGE, one of:
//   0  a workgroup counts the runs that end in its block
//   1  a workgroup adds up the blocks of a channel: how many runs lie before each, and in all
//   2  a workgroup writes the runs of its block where they belong
//   3  samples
//   4  a workgroup adds up the keys of its block, and counts where they descend
layout(local_size_x = INVOCATIONS) in;

#define BLOCK (INVOCATIONS * PER_INVOCATION)
#if KEY_WORDS == 1
#define KEY uint
#else
#define KEY uvec2  // as the host has it: its low word, then its high word
#endif

layout(std430, binding = 0) readonly buffer Keys { KEY keys[]; };
layout(std430, binding = 1) restrict buffer Counts {
  uint totals[4];      // runs of each channel
  uint block_runs[];   // of block b of channel c at c * blocks + b; after stage 1: before it
};
layout(std430, binding = 2) writeonly restrict buffer FoundKeys { KEY found_keys[]; };
layout(std430, binding = 3) writeonly restrict buffer FoundEnds { uint found_ends[]; };

uniform uvec4 key_at;   // where each channel begins: an index of `keys`
uniform uvec4 lengths;  // its keys
uniform uint blocks;    // of the longest channel
uniform uint room;      // elements of a channel in `found_keys` and `found_ends`
uniform uvec4 first;    // of samples
uniform uvec4 stride;

#if STAGE == 4
layout(std430, binding = 4) restrict buffer Checks {
  uint checks[];  // of channel c from 3c on: sums of low words, of high words, descents
};
#endif

shared uint sums[INVOCATIONS];

// Shared memory as the others wrote it before. Not every version of GLSL says that barrier() alone
// does that.
void meet() {
  memoryBarrierShared();
  barrier();
}

// Inclusive sums over the workgroup's invocations (Hillis and Steele).
uint sum_up_to_here(uint value) {
  uint here = gl_LocalInvocationIndex;
  sums[here] = value;
  meet();
  for (uint distance = 1u; distance < uint(INVOCATIONS); distance *= 2u) {
    uint other = here >= distance ? sums[here - distance] : 0u;
    meet();
    sums[here] += other;
    meet();
  }
  return sums[here];
}

#if STAGE == 0 || STAGE == 2 || STAGE == 4

shared KEY block_keys[BLOCK + 1];

// The keys of this workgroup's block and one more, read side by side.
void load_block(uint begin, uint channel) {
  for (uint at = gl_LocalInvocationIndex; at <= uint(BLOCK); at += uint(INVOCATIONS)) {
    if (begin + at < lengths[channel]) block_keys[at] = keys[key_at[channel] + begin + at];
  }
  meet();
}

#if STAGE == 4

#if KEY_WORDS == 1
uint low_word(uint key) { return key; }
uint high_word(uint key) { return 0u; }
bool descends(uint a, uint b) { return a > b; }
#else
uint low_word(uvec2 key) { return key.x; }
uint high_word(uvec2 key) { return key.y; }
bool descends(uvec2 a, uvec2 b) { return a.y > b.y || (a.y == b.y && a.x > b.x); }
#endif

void main() {
  uint begin = gl_WorkGroupID.x * uint(BLOCK);
  uint channel = gl_WorkGroupID.y;
  load_block(begin, channel);
  uvec3 found = uvec3(0u);
  for (uint i = 0u; i < uint(PER_INVOCATION); ++i) {
    uint at = i * uint(INVOCATIONS) + gl_LocalInvocationIndex;
    if (begin + at >= lengths[channel]) break;
    found += uvec3(low_word(block_keys[at]), high_word(block_keys[at]), 0u);
    if (begin + at + 1u < lengths[channel] && descends(block_keys[at], block_keys[at + 1u])) {
      ++found.z;
    }
  }
  for (uint i = 0u; i < 3u; ++i) {
    meet();  // before `sums` is written again
    uint block_sum = sum_up_to_here(found[i]);
    if (gl_LocalInvocationIndex == uint(INVOCATIONS - 1)) atomicAdd(checks[3u * channel + i], block_sum);
  }
}

#else

bool ends_run(uint at, uint begin, uint channel) {
  uint index = begin + at;
  if (index >= lengths[channel]) return false;
  return index + 1u == lengths[channel] || block_keys[at] != block_keys[at + 1u];
}

void main() {
  uint block = gl_WorkGroupID.x;
  uint channel = gl_WorkGroupID.y;
  uint begin = block * uint(BLOCK);
  load_block(begin, channel);
  uint own = gl_LocalInvocationIndex * uint(PER_INVOCATION);
  uint runs = 0u;
  for (uint i = 0u; i < uint(PER_INVOCATION); ++i) {
    if (ends_run(own + i, begin, channel)) ++runs;
  }
  uint up_to_here = sum_up_to_here(runs);
#if STAGE == 0
  if (gl_LocalInvocationIndex == uint(INVOCATIONS - 1)) {
    block_runs[channel * blocks + block] = up_to_here;
  }
#else
  uint to = channel * room + block_runs[channel * blocks + block] + up_to_here - runs;
  for (uint i = 0u; i < uint(PER_INVOCATION); ++i) {
    if (!ends_run(own + i, begin, channel)) continue;
    found_keys[to] = block_keys[own + i];
    found_ends[to] = begin + own + i + 1u;
    ++to;
  }
#endif
}

#endif

#elif STAGE == 1

void main() {
  uint channel = gl_WorkGroupID.y;
  uint before = 0u;
  for (uint begin = 0u; begin < blocks; begin += uint(INVOCATIONS)) {
    uint block = begin + gl_LocalInvocationIndex;
    uint runs = block < blocks ? block_runs[channel * blocks + block] : 0u;
    uint up_to_here = sum_up_to_here(runs);
    if (block < blocks) block_runs[channel * blocks + block] = before + up_to_here - runs;
    before += sums[INVOCATIONS - 1];
    meet();  // before the next round writes `sums`
  }
  if (gl_LocalInvocationIndex == 0u) totals[channel] = before;
}

#else

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint channel = gl_WorkGroupID.y;
  // May wrap around behind a channel's last sample, where `room` is for more of another channel:
  // what is then written lies behind the channel's own samples.
  uint index = first[channel] + i * stride[channel];
  if (i < room && index < lengths[channel]) {
    found_keys[channel * room + i] = keys[key_at[channel] + index];
  }
}

#endif
