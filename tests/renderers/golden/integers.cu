// Compile with --fmad=false.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

static __device__ inline int truncdiv_int(int a, int b) {
  return b == -1 ? (int)-(unsigned int)a : a / (b ? b : 1);
}

static __device__ inline int truncmod_int(int a, int b) {
  return b == -1 ? 0 : a % (b ? b : 1);
}

extern "C" __global__ void integers(
    int *__restrict__ data0,
    const int *__restrict__ data1,
    const int *__restrict__ data2,
    const bool *__restrict__ data3) {
  for (int r0 = 0; r0 < 8; r0++) {
    int val0 = data1[r0];
    int val1 = data2[r0];
    int idx0 = (int)((unsigned int)(int)((unsigned int)truncdiv_int(val0, val1) * (unsigned int)1000) + (unsigned int)truncmod_int(val0, val1));
    data0[r0] = (data3[r0] & (val1 != 0)) ? idx0 : (-1);
  }
}
