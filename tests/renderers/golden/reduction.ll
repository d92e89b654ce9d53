define void @r_4_n(ptr noalias %data0, ptr noalias readonly %data1, i32 %n) {
entry:
  %acc0 = alloca float
  br label %loop0
loop0:
  %r0 = phi i32 [ 0, %entry ], [ %r0.next, %loop0.latch ]
  %v0 = icmp slt i32 %r0, 4
  br i1 %v0, label %loop0.body, label %loop0.end
loop0.body:
  %v1 = mul nuw nsw i32 %r0, %n
  store float 0x0000000000000000, ptr %acc0
  br label %loop1
loop1:
  %r1 = phi i32 [ 0, %loop0.body ], [ %r1.next, %loop1.latch ]
  %v2 = icmp slt i32 %r1, %n
  br i1 %v2, label %loop1.body, label %loop1.end
loop1.body:
  %v3 = load float, ptr %acc0
  %v4 = add nuw nsw i32 %v1, %r1
  %v5 = icmp slt i32 %r1, 100
  br i1 %v5, label %load6, label %load6.end
load6:
  %v7 = getelementptr inbounds float, ptr %data1, i32 %v4
  %v8 = load float, ptr %v7, align 4
  br label %load6.end
load6.end:
  %v9 = phi float [ %v8, %load6 ], [ 0x0000000000000000, %loop1.body ]
  %v10 = fadd float %v3, %v9
  store float %v10, ptr %acc0
  br label %loop1.latch
loop1.latch:
  %r1.next = add nuw nsw i32 %r1, 1
  br label %loop1
loop1.end:
  %v11 = load float, ptr %acc0
  %v12 = getelementptr inbounds float, ptr %data0, i32 %r0
  store float %v11, ptr %v12, align 4
  br label %loop0.latch
loop0.latch:
  %r0.next = add nuw nsw i32 %r0, 1
  br label %loop0
loop0.end:
  ret void
}
