// Compile with -fwrapv -ffp-contract=off.
#include <math.h>
#include <stdint.h>

void padded(int64_t *restrict data0, const int16_t *restrict data1, int n) {
  for (int r0 = 0; r0 < n; r0++) {
    int64_t acc0 = 0ll;
    for (int r1 = 0; r1 < 3; r1++) {
      int idx0 = r0 + r1 + (-1);
      acc0 += (int64_t)(int16_t)(((idx0 >= 0) & (idx0 < n)) ? data1[idx0] : 0);
    }
    if ((r0 & 1) == 0) {
      data0[r0] = acc0;
    }
  }
}
