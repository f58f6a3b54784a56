/* SPDX-License-Identifier: GPL-2.0-only */
/* The registers that are passed to a kprobe, under the names that <bpf/bpf_tracing.h> expects. The
 * layouts are those of uapi/asm/ptrace.h, which are a stable ABI. */
#ifndef __SCXTOP_PT_REGS_BPF_H
#define __SCXTOP_PT_REGS_BPF_H

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	unsigned long rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	unsigned long long regs[31], sp, pc, pstate;
};
#elif defined(__TARGET_ARCH_riscv)
struct user_regs_struct {
	unsigned long pc, ra, sp, gp, tp, t0, t1, t2, s0, s1;
	unsigned long a0, a1, a2, a3, a4, a5, a6, a7;
	unsigned long s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, t3, t4, t5, t6;
};
#endif

#endif /* __SCXTOP_PT_REGS_BPF_H */
