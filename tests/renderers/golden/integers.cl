#pragma OPENCL FP_CONTRACT OFF

static inline int truncdiv_int(int a, int b) {
  return b == -1 ? (int)-(uint)a : a / (b ? b : 1);
}

static inline int truncmod_int(int a, int b) {
  return b == -1 ? 0 : a % (b ? b : 1);
}

__kernel void integers(
    __global int *restrict data0,
    __global const int *restrict data1,
    __global const int *restrict data2,
    __global const uchar *restrict data3) {
  for (int r0 = 0; r0 < 8; r0++) {
    int val0 = data1[r0];
    int val1 = data2[r0];
    int idx0 = (int)((uint)(int)((uint)truncdiv_int(val0, val1) * (uint)1000) + (uint)truncmod_int(val0, val1));
    data0[r0] = ((data3[r0] != 0) & (val1 != 0)) ? idx0 : (-1);
  }
}
