// Compile with --fmad=false.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

extern "C" __global__ void __launch_bounds__(8) group_sum(float *__restrict__ data0, const float *__restrict__ data1) {
  __shared__ __align__(16) float local0[8];
  int gidx0 = blockIdx.x;
  int lidx0 = threadIdx.x;
  float acc0 = 0.0f;
  for (int r0 = 0; r0 < 8; r0++) {
    acc0 += data1[gidx0 * 64 + lidx0 * 8 + r0];
  }
  local0[lidx0] = acc0;
  __syncthreads();
  float acc1 = 0.0f;
  for (int r1 = 0; r1 < 8; r1++) {
    acc1 += local0[r1];
  }
  if (lidx0 == 0) {
    data0[gidx0] = acc1;
  }
}
