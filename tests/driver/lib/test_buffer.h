/* SPDX-License-Identifier: MIT */
/*
 * Buffers of the test's module mm_holder: dma-bufs whose faults are answered as a GPU's driver may
 * answer them. In an engine they are MEMORY_TEST_BUFFER.
 */
#ifndef TEST_BUFFER_H
#define TEST_BUFFER_H

/*
 * Faults of all buffers from now on: @again of them give no page, as if the GPU were busy, and each
 * of them takes @delay_ms. Skips the test if the module is not there.
 */
void test_buffer_faults(unsigned again, unsigned delay_ms);

/* From now on there is no memory: each fault is SIGBUS. */
void test_buffer_faults_fail(void);

/* The number of buffers that exist. */
int test_buffer_count(void);

#endif /* TEST_BUFFER_H */
