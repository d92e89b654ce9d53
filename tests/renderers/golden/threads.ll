define void @E_4_4(ptr noalias %data0, ptr noalias readonly %data1, i32 %thread) {
entry:
  %v0 = mul nuw nsw i32 %thread, 4
  br label %loop0
loop0:
  %r0 = phi i32 [ 0, %entry ], [ %r0.next, %loop0.latch ]
  %v1 = icmp slt i32 %r0, 4
  br i1 %v1, label %loop0.body, label %loop0.end
loop0.body:
  %v2 = add nuw nsw i32 %v0, %r0
  %v3 = getelementptr inbounds i8, ptr %data1, i32 %v2
  %v4 = load i8, ptr %v3, align 1
  %v5 = icmp ne i8 %v4, 0
  %v6 = icmp ne i32 %r0, 2
  br i1 %v6, label %if7, label %if7.end
if7:
  %v8 = xor i1 %v5, true
  %v9 = zext i1 %v8 to i8
  %v10 = getelementptr inbounds i8, ptr %data0, i32 %v2
  store i8 %v9, ptr %v10, align 1
  br label %if7.end
if7.end:
  br label %loop0.latch
loop0.latch:
  %r0.next = add nuw nsw i32 %r0, 1
  br label %loop0
loop0.end:
  ret void
}
