/* SPDX-License-Identifier: MIT */
/*
 * The parts of test-registrar.
 */
#ifndef REGISTRAR_TESTS_H
#define REGISTRAR_TESTS_H

void add_file_tests(void);
void add_command_tests(void);

#endif
