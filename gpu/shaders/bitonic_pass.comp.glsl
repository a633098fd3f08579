// One pass of the bitonic network over planar windows, one workgroup for each local array
// (gpu/sort/compute_plan.h, which proves what is done here; the same names there). The program's maker
// puts before this text "#version 430 core" and the defines KEY_WORDS (1 or 2), PAYLOAD (0 or 1),
// BLOCK_LOG2, REGISTERS_LOG2 (1 to 4), INVOCATIONS and ROUNDS_MAX.
layout(local_size_x = INVOCATIONS) in;

#define WORDS (KEY_WORDS + PAYLOAD)
#define REGISTERS (1 << REGISTERS_LOG2)
#define LARGEST 0xffffffffu

// A key of 64 bits as the host has it: its low word, then its high word.
#if KEY_WORDS == 1
layout(std430, binding = 0) restrict buffer Keys { uint keys[]; };
#else
layout(std430, binding = 0) restrict buffer Keys { uvec2 keys[]; };
#endif
#if PAYLOAD
layout(std430, binding = 1) restrict buffer Payloads { uint payloads[]; };
#endif

uniform uint first_channel;    // the window of workgroups with y = 0
uniform uvec4 key_at;          // where each window begins: an index of `keys`,
uniform uvec4 payload_at;      // of `payloads`
uniform uvec4 lengths;
uniform uint column_bits;
uniform uint row_shift;
uniform uint row_bits;
uniform uint pass_mirrored;
uniform uint round_count;
uniform uint rounds[ROUNDS_MAX];

// An element's words from the least significant to the most: payload, low word, high word.
#if WORDS == 1
#define ELEMENT uint
#elif WORDS == 2
#define ELEMENT uvec2
#else
#define ELEMENT uvec3
#endif

// One plane for each word, so that neighbours lie in different banks.
shared uint local_x[1 << BLOCK_LOG2];
#if WORDS > 1
shared uint local_y[1 << BLOCK_LOG2];
#endif
#if WORDS > 2
shared uint local_z[1 << BLOCK_LOG2];
#endif

ELEMENT registers[REGISTERS];

// SharedPlace(): linear, so that place(a ^ b) = place(a) ^ place(b).
uint place(uint at) {
  return at ^ ((at >> 5) & 1u) * 31u ^ ((at >> 6) & 1u) * 21u ^ ((at >> 7) & 1u) * 25u ^
         ((at >> 8) & 1u) * 17u;
}

void put_shared(uint at, ELEMENT element) {
#if WORDS == 1
  local_x[at] = element;
#else
  local_x[at] = element.x;
  local_y[at] = element.y;
#endif
#if WORDS > 2
  local_z[at] = element.z;
#endif
}

ELEMENT get_shared(uint at) {
#if WORDS == 1
  return local_x[at];
#elif WORDS == 2
  return uvec2(local_x[at], local_y[at]);
#else
  return uvec3(local_x[at], local_y[at], local_z[at]);
#endif
}

// ComputePass::IndexOf().
uint index_of(uint at) {
  uint group = gl_WorkGroupID.x;
  uint middle_bits = row_shift - column_bits;
  uint middle_mask = (1u << middle_bits) - 1u;
  uint row = at >> column_bits;
  uint middle = group & middle_mask;
  if (pass_mirrored != 0u && ((row >> (row_bits - 1u)) & 1u) != 0u) middle ^= middle_mask;
  return ((group >> middle_bits) << (row_shift + row_bits)) | (row << row_shift) |
         (middle << column_bits) | (at & ((1u << column_bits) - 1u));
}

ELEMENT get_memory(uint channel, uint at) {
  uint index = index_of(at);
  if (index >= lengths[channel]) return ELEMENT(LARGEST);
#if KEY_WORDS == 1 && !PAYLOAD
  return keys[key_at[channel] + index];
#elif PAYLOAD
  return ELEMENT(payloads[payload_at[channel] + index], keys[key_at[channel] + index]);
#else
  return keys[key_at[channel] + index];
#endif
}

void put_memory(uint channel, uint at, ELEMENT element) {
  uint index = index_of(at);
  if (index >= lengths[channel]) return;
#if PAYLOAD
  payloads[payload_at[channel] + index] = element.x;
#if KEY_WORDS == 1
  keys[key_at[channel] + index] = element.y;
#else
  keys[key_at[channel] + index] = element.yz;
#endif
#else
  keys[key_at[channel] + index] = element;
#endif
}

// Leaves the smaller of two elements in register a.
void exchange(int a, int b) {
  ELEMENT of_a = registers[a];
  ELEMENT of_b = registers[b];
#if WORDS == 1
  registers[a] = min(of_a, of_b);
  registers[b] = max(of_a, of_b);
#else
#if WORDS == 2
  bool swap = of_b.y < of_a.y || (of_b.y == of_a.y && of_b.x < of_a.x);
#else
  bool swap = of_b.z < of_a.z ||
              (of_b.z == of_a.z &&
               (of_b.y < of_a.y || (of_b.y == of_a.y && of_b.x < of_a.x)));
#endif
  registers[a] = swap ? of_b : of_a;
  registers[b] = swap ? of_a : of_b;
#endif
}

// The steps in registers. BIT is a constant everywhere, so that the loops unroll and registers[] is
// never addressed.
#define STEP(BIT, MASK)                              \
  for (int i = 0; i < REGISTERS / 2; ++i) {          \
    int a = ((i >> (BIT)) << ((BIT) + 1)) | (i & ((1 << (BIT)) - 1)); \
    exchange(a, a ^ (MASK));                         \
  }
#define PLAIN(BIT) STEP(BIT, 1 << (BIT))
#define MIRRORED(BIT) STEP(BIT, (2 << (BIT)) - 1)

void whole_stages() {
  MIRRORED(0)
#if REGISTERS_LOG2 > 1
  MIRRORED(1) PLAIN(0)
#endif
#if REGISTERS_LOG2 > 2
  MIRRORED(2) PLAIN(1) PLAIN(0)
#endif
#if REGISTERS_LOG2 > 3
  MIRRORED(3) PLAIN(2) PLAIN(1) PLAIN(0)
#endif
}

void part_of_a_stage(uint steps, bool mirrored) {
  if (mirrored) {
    MIRRORED(REGISTERS_LOG2 - 1)
  } else {
    PLAIN(REGISTERS_LOG2 - 1)
  }
#if REGISTERS_LOG2 > 1
  if (steps > 1u) { PLAIN(REGISTERS_LOG2 - 2) }
#endif
#if REGISTERS_LOG2 > 2
  if (steps > 2u) { PLAIN(REGISTERS_LOG2 - 3) }
#endif
#if REGISTERS_LOG2 > 3
  if (steps > 3u) { PLAIN(REGISTERS_LOG2 - 4) }
#endif
}

// Memory is read into registers and written from them where neighbouring invocations then touch at
// least 32 neighbouring keys, else by way of shared memory.
const uint kRunLog2 = 5u;

// What the group wrote to shared memory is there for all of it. Not every version of GLSL says that
// barrier() alone does that.
void meet() {
  memoryBarrierShared();
  barrier();
}

void sort_group(uint channel) {
  uint invocation = gl_LocalInvocationID.x;
  uint first_bit = rounds[0] & 0xffu;
  bool from_memory = first_bit >= kRunLog2;
  if (!from_memory) {
    for (uint j = 0u; j < uint(REGISTERS); ++j) {
      uint at = j * uint(INVOCATIONS) + invocation;
      put_shared(place(at), get_memory(channel, at));
    }
    meet();
  }
  for (uint r = 0u; r < round_count; ++r) {
    uint round_code = rounds[r];
    first_bit = round_code & 0xffu;
    uint steps = (round_code >> 8) & 0xffu;
    bool mirrored = ((round_code >> 16) & 1u) != 0u;
    // LocalOf(): the index of register 0, and what is inverted for the upper half of them.
    uint mask = (1u << first_bit) - 1u;
    uint base = ((invocation >> first_bit) << (first_bit + uint(REGISTERS_LOG2))) |
                (invocation & mask);
    uint inverted = mirrored ? mask : 0u;
    uint base_place = place(base);
    for (int j = 0; j < REGISTERS; ++j) {
      uint change = (uint(j) << first_bit) ^ (j >= REGISTERS / 2 ? inverted : 0u);
      registers[j] = r == 0u && from_memory ? get_memory(channel, base ^ change)
                                            : get_shared(base_place ^ place(change));
    }
    if (((round_code >> 17) & 1u) != 0u) {
      whole_stages();
    } else {
      part_of_a_stage(steps, mirrored);
    }
    bool to_memory = r + 1u == round_count && first_bit >= kRunLog2;
    for (int j = 0; j < REGISTERS; ++j) {
      uint change = (uint(j) << first_bit) ^ (j >= REGISTERS / 2 ? inverted : 0u);
      if (to_memory) {
        put_memory(channel, base ^ change, registers[j]);
      } else {
        put_shared(base_place ^ place(change), registers[j]);
      }
    }
    if (!to_memory) meet();
  }
  if (first_bit < kRunLog2) {
    for (uint j = 0u; j < uint(REGISTERS); ++j) {
      uint at = j * uint(INVOCATIONS) + invocation;
      put_memory(channel, at, get_shared(place(at)));
    }
  }
}

void main() {
  uint channel = first_channel + gl_WorkGroupID.y;
  // Nothing but padding: the same for the whole group, as the barriers require.
  if (index_of(0u) < lengths[channel]) sort_group(channel);
}
