// What the machine can do at most: each function does one thread's share of a measurement.
#include <stdint.h>

typedef float lanes __attribute__((vector_size(64)));

static lanes load(const float *p) {
  lanes v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Reads `count` floats, a multiple of 64.
float read_all(const float *a, int64_t count) {
  lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (int64_t i = 0; i < count; i += 64) {
    s0 += load(a + i), s1 += load(a + i + 16), s2 += load(a + i + 32), s3 += load(a + i + 48);
  }
  lanes s = s0 + s1 + s2 + s3;
  float total = 0;
  for (int k = 0; k < 16; k++) total += s[k];
  return total;
}

// Reads three arrays and writes a fourth.
void read_and_write(float *d, const float *a, const float *b, const float *c, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    lanes v = load(a + i) * load(b + i) + load(c + i);
    __builtin_memcpy(d + i, &v, sizeof v);
  }
}

// Multiplies and adds WIDE floats at once, in eight independent chains, `steps` times.
typedef float wide __attribute__((vector_size(4 * WIDE)));

float multiply_add(int64_t steps) {
  wide x0 = {0}, x1 = {0}, x2 = {0}, x3 = {0}, x4 = {0}, x5 = {0}, x6 = {0}, x7 = {0};
  wide x8 = {0}, x9 = {0};
  wide m = x0 + 0.999f, c = x0 + 0.001f;
  for (int64_t i = 0; i < steps; i++) {
    x0 = x0 * m + c, x1 = x1 * m + c, x2 = x2 * m + c, x3 = x3 * m + c, x4 = x4 * m + c;
    x5 = x5 * m + c, x6 = x6 * m + c, x7 = x7 * m + c, x8 = x8 * m + c, x9 = x9 * m + c;
  }
  return x0[0] + x1[0] + x2[0] + x3[0] + x4[0] + x5[0] + x6[0] + x7[0] + x8[0] + x9[0];
}
