// Compile with -fwrapv -ffp-contract=off.
#include <math.h>
#include <stdint.h>

static inline float half_to_float(uint16_t bits) {
  __fp16 h;
  __builtin_memcpy(&h, &bits, sizeof h);
  return h;
}

static inline uint16_t float_to_half(float a) {
  __fp16 h = a;
  uint16_t bits;
  __builtin_memcpy(&bits, &h, sizeof bits);
  return bits;
}

void threaded(uint16_t *restrict data0, const uint16_t *restrict data1, int thread) {
  for (int r0 = 0; r0 < 4; r0++) {
    int idx0 = thread * 4 + r0;
    float val0 = half_to_float(data1[idx0]);
    data0[idx0] = float_to_half(val0 * val0);
  }
}
