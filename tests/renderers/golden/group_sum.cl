#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void group_sum(
    __global float *restrict data0,
    __global const float *restrict data1) {
  __local float local0[8];
  int gidx0 = get_group_id(0);
  int lidx0 = get_local_id(0);
  float acc0 = 0.0f;
  for (int r0 = 0; r0 < 8; r0++) {
    acc0 += data1[gidx0 * 64 + lidx0 * 8 + r0];
  }
  local0[lidx0] = acc0;
  barrier(CLK_LOCAL_MEM_FENCE);
  float acc1 = 0.0f;
  for (int r1 = 0; r1 < 8; r1++) {
    acc1 += local0[r1];
  }
  if (lidx0 == 0) {
    data0[gidx0] = acc1;
  }
}
