// Compile with -fwrapv -ffp-contract=off.
#include <math.h>
#include <stdint.h>

static inline int truncdiv_int(int a, int b) {
  return b == -1 ? -a : a / (b ? b : 1);
}

static inline int truncmod_int(int a, int b) {
  return b == -1 ? 0 : a % (b ? b : 1);
}

void integers(int *restrict data0, const int *restrict data1, const int *restrict data2, const _Bool *restrict data3) {
  for (int r0 = 0; r0 < 8; r0++) {
    int val0 = data1[r0];
    int val1 = data2[r0];
    int idx0 = (data3[r0] & (val1 != 0)) ? truncdiv_int(val0, val1) * 1000 + truncmod_int(val0, val1) : (-1);
    data0[r0] = idx0;
  }
}
