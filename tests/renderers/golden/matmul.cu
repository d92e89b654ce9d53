// Compile with --fmad=false.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

static __device__ inline float4 mul_float4(float4 a, float4 b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

static __device__ inline float4 add_float4(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

extern "C" __global__ void matmul(
    float *__restrict__ data0,
    const float *__restrict__ data1,
    const float *__restrict__ data2) {
  int gidx1 = blockIdx.y;
  int gidx0 = blockIdx.x * blockDim.x + threadIdx.x;
  int idx0 = gidx0 * 4;
  int idx1 = gidx1 * 64;
  int idx2 = gidx1 * 32;
  float4 acc0 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 acc1 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int r0 = 0; r0 < 32; r0++) {
    float4 val0 = *(const float4 *)(data2 + r0 * 16 + idx0);
    int idx3 = idx1 + r0;
    float val1 = data1[idx3];
    acc0 = add_float4(acc0, mul_float4(make_float4(val1, val1, val1, val1), val0));
    float val2 = data1[idx3 + 32];
    acc1 = add_float4(acc1, mul_float4(make_float4(val2, val2, val2, val2), val0));
  }
  int idx4 = idx2 + idx0;
  *(float4 *)(data0 + idx4) = acc0;
  *(float4 *)(data0 + idx4 + 16) = acc1;
}
