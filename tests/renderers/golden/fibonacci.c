// Compile with -fwrapv -ffp-contract=off.
#include <math.h>
#include <stdint.h>

void fibonacci(int *restrict data0, int steps) {
  int acc0 = 0;
  int acc1 = 1;
  for (int r0 = 0; r0 < steps; r0++) {
    int old0 = acc0;
    acc0 = acc1;
    acc1 = old0 + acc1;
  }
  data0[0] = acc0;
  data0[1] = acc1;
}
