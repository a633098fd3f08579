// Runs and samples of sorted windows, four channels at once (gpu/reduce/gl_compute_reducer.h). The
// program's maker puts before this text "#version 430 core" and the defines KEY_WORDS (1 or 2),
// INVOCATIONS (a power of two), PER_INVOCATION, and STAGE, one of:
//   0  a workgroup counts the runs that end in its block
//   1  a workgroup adds up the blocks of a channel: how many runs lie before each, and in all
//   2  a workgroup writes the runs of its block where they belong
//   3  samples
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

#if STAGE == 0 || STAGE == 2

shared KEY block_keys[BLOCK + 1];

// The keys of this workgroup's block and one more, read side by side.
void load_block(uint begin, uint channel) {
  for (uint at = gl_LocalInvocationIndex; at <= uint(BLOCK); at += uint(INVOCATIONS)) {
    if (begin + at < lengths[channel]) block_keys[at] = keys[key_at[channel] + begin + at];
  }
  meet();
}

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
