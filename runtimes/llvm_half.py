"""The conversions between float16 and float32 in integer arithmetic, as LLVM IR.

For CPUs without instructions for them LLVM emits calls to these two functions, which compilers have in their run-time
library and a Python process need not have. They round to nearest even, and keep NaN, infinities and subnormals.
"""

from __future__ import annotations

HALF_CONVERSIONS = """\
define float @__extendhfsf2(half %x) {
  %half = bitcast half %x to i16
  %bits = zext i16 %half to i32
  %magnitude = and i32 %bits, 32767
  %moved = shl i32 %magnitude, 13
  %small = bitcast i32 %moved to float
  ; The exponent's bias grows by 112. The product is exact, also where the half is subnormal.
  %scaled = fmul float %small, 0x46F0000000000000
  %value = bitcast float %scaled to i32
  %special = or i32 %moved, 2139095040
  %finite = icmp ult i32 %magnitude, 31744
  %number = select i1 %finite, i32 %value, i32 %special
  %high = and i32 %bits, 32768
  %sign = shl i32 %high, 16
  %signed = or i32 %number, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

define half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %magnitude = and i32 %bits, 2147483647
  ; Below 2^-14 the step is 2^-24, which is that of 0.5: adding 0.5 rounds.
  %size = bitcast i32 %magnitude to float
  %aligned = fadd float %size, 5.0e-1
  %aligned.bits = bitcast float %aligned to i32
  %subnormal = sub i32 %aligned.bits, 1056964608
  ; Else round to 10 bits of mantissa, ties to even, and lower the bias by 112.
  %last = lshr i32 %magnitude, 13
  %odd = and i32 %last, 1
  %biased = add i32 %magnitude, 4095
  %rounded = add i32 %biased, %odd
  %rebased = sub i32 %rounded, 939524096
  %normal = lshr i32 %rebased, 13
  %is.small = icmp ult i32 %magnitude, 947912704
  %number = select i1 %is.small, i32 %subnormal, i32 %normal
  %is.large = icmp uge i32 %magnitude, 1199566848
  %finite = select i1 %is.large, i32 31744, i32 %number
  %payload = and i32 %last, 1023
  %quiet = or i32 %payload, 32256
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  %unsigned = select i1 %is.nan, i32 %quiet, i32 %finite
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %signed = or i32 %unsigned, %sign
  %short = trunc i32 %signed to i16
  %result = bitcast i16 %short to half
  ret half %result
}
"""
