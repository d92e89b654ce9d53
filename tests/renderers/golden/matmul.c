// Compile with -fwrapv -ffp-contract=off.
#include <math.h>
#include <stdint.h>
typedef float float4 __attribute__((vector_size(16)));

static inline float4 load_float4(const float *p) {
  float4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline void store_float4(float *p, float4 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

void matmul(float *restrict data0, const float *restrict data1, const float *restrict data2) {
  for (int r0 = 0; r0 < 4; r0++) {
    for (int r1 = 0; r1 < 4; r1++) {
      int idx0 = r1 * 4;
      int idx1 = r0 * 64;
      int idx2 = r0 * 32;
      float4 acc0 = (float4){0.0f, 0.0f, 0.0f, 0.0f};
      float4 acc1 = (float4){0.0f, 0.0f, 0.0f, 0.0f};
      for (int r2 = 0; r2 < 32; r2++) {
        float4 val0 = load_float4(data2 + r2 * 16 + idx0);
        int idx3 = idx1 + r2;
        float val1 = data1[idx3];
        acc0 += (float4){val1, val1, val1, val1} * val0;
        float val2 = data1[idx3 + 32];
        acc1 += (float4){val2, val2, val2, val2} * val0;
      }
      int idx4 = idx2 + idx0;
      store_float4(data0 + idx4, acc0);
      store_float4(data0 + idx4 + 16, acc1);
    }
  }
}
