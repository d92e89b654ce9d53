#pragma OPENCL FP_CONTRACT OFF

__kernel void padded(__global long *restrict data0, __global const short *restrict data1, int n) {
  for (int r0 = 0; r0 < n; r0++) {
    long acc0 = 0l;
    for (int r1 = 0; r1 < 3; r1++) {
      int idx0 = r0 + r1 + (-1);
      long idx1 = (long)((ulong)acc0 + (ulong)(long)(short)(((idx0 >= 0) & (idx0 < n)) ? data1[idx0] : (short)0));
      acc0 = idx1;
    }
    if ((r0 & 1) == 0) {
      data0[r0] = acc0;
    }
  }
}
