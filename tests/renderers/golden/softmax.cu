// Compile with --fmad=false.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

extern "C" __global__ void softmax(float *__restrict__ data0, const float *__restrict__ data1) {
  for (int r0 = 0; r0 < 4; r0++) {
    int idx0 = r0 * 16;
    float acc0 = (-INFINITY);
    for (int r1 = 0; r1 < 16; r1++) {
      float val0 = data1[idx0 + r1];
      acc0 = ((val0 > acc0) | (val0 != val0)) ? val0 : acc0;
    }
    float acc1 = 0.0f;
    for (int r2 = 0; r2 < 16; r2++) {
      acc1 += exp2f(data1[idx0 + r2] - acc0);
    }
    for (int r3 = 0; r3 < 16; r3++) {
      int idx1 = idx0 + r3;
      data0[idx1] = exp2f(data1[idx1] - acc0) / acc1;
    }
  }
}
