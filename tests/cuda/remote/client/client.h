/* SPDX-License-Identifier: MIT */
/*
 * client CASE: a program of CUDA's that knows nothing of where its driver is. It checks what it
 * computes, and says what is wrong.
 */
#ifndef REMOTE_CLIENT_H
#define REMOTE_CLIENT_H

#include "driver.h"

#define MIB (1ull << 20)

/* Ends the program, and says which line, if @result is another one. */
void expect_result(CUresult result, CUresult wanted, const char *file, int line, const char *what);

#define is(call, wanted) expect_result(call, (CUresult)(wanted), __FILE__, __LINE__, #call)
#define ok(call)         is(call, CUDA_SUCCESS)
#define must(condition)                                                                            \
    ((condition) ? (void)0 : expect_result(1, 0, __FILE__, __LINE__, #condition))

/* Memory of the program alone, which the driver never heard of. */
extern char text_of_many[8192];

/* A context of the first GPU, which is this thread's then. */
CUcontext begin_context(void);
/* A kernel of compute_ptx.h. */
CUfunction load_function(CUmodule *module, const char *name);
CUdeviceptr allocate_device(size_t bytes);
unsigned int read_word(CUdeviceptr at);

/* launch.c */
void check_launch_ways(void);
/* memory.c */
void check_memory_limit(void);
void ask_beyond_memory(void);
void check_managed_memory(void);
void check_full_window(void);
void check_lent_memory(void);
void check_pinned_of_ended(void);
/* copies.c */
void check_large_copies(void);
void check_copies_of_rows(void);
void check_captured_copies(void);
/* copy_forms.c */
void check_copy_forms(void);
/* host_memory.c */
void check_host_memory(void);
void check_without_files(void);
/* links.c */
void check_linked_files(void);
/* shares.c */
void check_shares(void);
void import_shared_memory(void);
/* callback_order.c */
void check_callback_order(void);
/* local.c */
void check_local_answers(void);
void check_answers_without_worker(void);
/* nvml.c */
void check_nvml(void);
void check_nvml_of_vm(void);
void check_nvml_of_unit(void);
void check_lost_nvml(void);
void check_no_nvml(void);
/* printing.c */
void print_in_kernel(void);
void print_at_end(void);
void fail_in_kernel(void);
/* ipc.c */
void check_ipc(void);
void open_memory_of_other(void);
/* passed.c */
void check_passed_calls(void);
/* objects.c */
void check_ended_objects(void);
void check_facts(void);
/* threads.c */
void check_threads(void);
void check_order_of_threads(void);
/* stress.c */
void check_random_threads(void);
/* streams.c */
void check_callbacks(void);
void check_waiting_thread(void);
void check_posted_error(void);
void check_blocking_launches(void);
/* graphs.c */
void check_captured_graph(void);
void check_graph_nodes(void);
/* graph_nodes.c */
void check_any_nodes(void);
/* green_contexts.c */
void check_green_contexts(void);
/* structures.c */
void check_structures(void);
/* deaths.c */
void die_starting(void);
void die_posting(void);
void die_called(void);
void die_waiting(void);
void die_copying(void);
void die_sharing(void);
void die_ending(void);
/* lifetime.c */
void check_forked_child(void);
void hold_memory(void);
void hold_lent_memory(void);
void check_lost_worker(void);
void check_lost_memory(void);
void check_signals(void);
void check_own_faults(void);
void fill_until_killed(void);
void flood_guard(void);
void compute_until_told(void);
void check_no_arbiter(void);
void check_no_device(void);
void check_unusable_gpu(void);

#endif
