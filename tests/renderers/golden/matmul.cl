#pragma OPENCL FP_CONTRACT OFF

__kernel void matmul(
    __global float *restrict data0,
    __global const float *restrict data1,
    __global const float *restrict data2) {
  int gidx1 = get_global_id(1);
  int gidx0 = get_global_id(0);
  int idx0 = gidx0 * 4;
  int idx1 = gidx1 * 64;
  int idx2 = gidx1 * 32;
  float4 acc0 = (float4)(0.0f);
  float4 acc1 = (float4)(0.0f);
  for (int r0 = 0; r0 < 32; r0++) {
    float4 val0 = vload4(0, data2 + r0 * 16 + idx0);
    int idx3 = idx1 + r0;
    float val1 = data1[idx3];
    acc0 += (float4)(val1) * val0;
    float val2 = data1[idx3 + 32];
    acc1 += (float4)(val2) * val0;
  }
  int idx4 = idx2 + idx0;
  vstore4(acc0, 0, data0 + idx4);
  vstore4(acc1, 0, data0 + idx4 + 16);
}
