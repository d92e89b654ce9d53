define void @E_64(ptr noalias %data0, ptr noalias readonly %data1) {
entry:
  br label %loop0
loop0:
  %r0 = phi i32 [ 0, %entry ], [ %r0.next, %loop0.latch ]
  %v0 = icmp slt i32 %r0, 8
  br i1 %v0, label %loop0.body, label %loop0.end
loop0.body:
  %v1 = mul nuw nsw i32 %r0, 8
  %v2 = getelementptr inbounds float, ptr %data1, i32 %v1
  %v3 = load <8 x float>, ptr %v2, align 4
  %v4 = call <8 x float> @exp2.v8f32(<8 x float> %v3)
  %v5 = fcmp olt <8 x float> %v3, <float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000, float 0x0000000000000000>
  %v6 = select <8 x i1> %v5, <8 x float> %v4, <8 x float> %v3
  %v7 = getelementptr inbounds float, ptr %data0, i32 %v1
  store <8 x float> %v6, ptr %v7, align 4
  br label %loop0.latch
loop0.latch:
  %r0.next = add nuw nsw i32 %r0, 1
  br label %loop0
loop0.end:
  ret void
}

define internal <8 x float> @exp2.v8f32(<8 x float> %x) alwaysinline {
entry:
  %v0 = fcmp ogt <8 x float> %x, <float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000>
  %v1 = select <8 x i1> %v0, <8 x float> <float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000, float 0x4060200000000000>, <8 x float> %x
  %v2 = fcmp olt <8 x float> %v1, <float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000>
  %v3 = select <8 x i1> %v2, <8 x float> <float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000, float 0xC062E00000000000>, <8 x float> %v1
  %v4 = call <8 x float> @llvm.rint.v8f32(<8 x float> %v3)
  %v5 = fsub <8 x float> %v3, %v4
  %v6 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> <float 0x3F2417A9C0000000, float 0x3F2417A9C0000000, float 0x3F2417A9C0000000, float 0x3F2417A9C0000000, float 0x3F2417A9C0000000, float 0x3F2417A9C0000000, float 0x3F2417A9C0000000, float 0x3F2417A9C0000000>, <8 x float> %v5, <8 x float> <float 0x3F55F09480000000, float 0x3F55F09480000000, float 0x3F55F09480000000, float 0x3F55F09480000000, float 0x3F55F09480000000, float 0x3F55F09480000000, float 0x3F55F09480000000, float 0x3F55F09480000000>)
  %v7 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v6, <8 x float> %v5, <8 x float> <float 0x3F83B2DD20000000, float 0x3F83B2DD20000000, float 0x3F83B2DD20000000, float 0x3F83B2DD20000000, float 0x3F83B2DD20000000, float 0x3F83B2DD20000000, float 0x3F83B2DD20000000, float 0x3F83B2DD20000000>)
  %v8 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v7, <8 x float> %v5, <8 x float> <float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000, float 0x3FAC6AF7A0000000>)
  %v9 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v8, <8 x float> %v5, <8 x float> <float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000, float 0x3FCEBFBDC0000000>)
  %v10 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v9, <8 x float> %v5, <8 x float> <float 0x3FE62E4300000000, float 0x3FE62E4300000000, float 0x3FE62E4300000000, float 0x3FE62E4300000000, float 0x3FE62E4300000000, float 0x3FE62E4300000000, float 0x3FE62E4300000000, float 0x3FE62E4300000000>)
  %v11 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %v10, <8 x float> %v5, <8 x float> <float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000, float 0x3FF0000000000000>)
  %v12 = fptosi <8 x float> %v4 to <8 x i32>
  %v13 = freeze <8 x i32> %v12
  %v14 = ashr <8 x i32> %v13, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %v15 = sub <8 x i32> %v13, %v14
  %v16 = add <8 x i32> %v14, <i32 127, i32 127, i32 127, i32 127, i32 127, i32 127, i32 127, i32 127>
  %v17 = shl <8 x i32> %v16, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %v18 = bitcast <8 x i32> %v17 to <8 x float>
  %v19 = fmul <8 x float> %v11, %v18
  %v20 = add <8 x i32> %v15, <i32 127, i32 127, i32 127, i32 127, i32 127, i32 127, i32 127, i32 127>
  %v21 = shl <8 x i32> %v20, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %v22 = bitcast <8 x i32> %v21 to <8 x float>
  %v23 = fmul <8 x float> %v19, %v22
  ret <8 x float> %v23
}

declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <8 x float> @llvm.rint.v8f32(<8 x float>)
