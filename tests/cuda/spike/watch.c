// SPDX-License-Identifier: MIT
/*
 * Notes what NVIDIA's libraries ask of the driver's tables. The tables stay where they are, as
 * their addresses matter; a slot that is watched leads through a thunk, which notes the call and
 * goes on to the driver's function. This is for asking a card, and no part of the product.
 */
#include "spike.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLES 16u
#define SLOTS  128u
#define NOTED  64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched asked[NOTED], called[NOTED];
static unsigned int asked_count, called_count, tables_count;
static struct {
    uint8_t id[16];
    uintptr_t functions[SLOTS];
} tables[TABLES];

static struct watched *note(struct watched *list, unsigned int *count, const uint8_t *id,
                            unsigned int slot)
{
    for (unsigned int i = 0; i < *count; i++)
        if (!memcmp(list[i].id, id, 16) && list[i].slot == slot)
            return &list[i];
    if (*count == NOTED)
        return NULL;
    memcpy(list[*count].id, id, 16);
    list[*count].slot = slot;
    return &list[(*count)++];
}

#if defined(__x86_64__)
uintptr_t watch_note_call(uint64_t index, const uint64_t *arguments);

/* Called by the thunks: where the driver's function is. */
__attribute__((used)) uintptr_t watch_note_call(uint64_t index, const uint64_t *arguments)
{
    struct watched *at;

    pthread_mutex_lock(&lock);
    at = note(called, &called_count, tables[index / SLOTS].id, (unsigned int)(index % SLOTS));
    if (at && !at->calls++) {
        size_t used = 0;

        for (unsigned int i = 0; i < 6; i++)
            used += (size_t)snprintf(at->arguments + used, sizeof(at->arguments) - used,
                                     arguments[i] < 65536 ? "%s%llu" : "%saddress", i ? ", " : "",
                                     (unsigned long long)arguments[i]);
    }
    pthread_mutex_unlock(&lock);
    return tables[index / SLOTS].functions[index % SLOTS];
}

/* A thunk for each slot of each table; all arguments that a call can have are kept. */
__asm__(".text\n"
        ".balign 16\n"
        "watch_thunks:\n"
        ".set index, 0\n"
        ".rept 16 * 128\n"
        ".balign 16\n"
        "pushq $index\n"
        "jmp watch_common\n"
        ".set index, index + 1\n"
        ".endr\n"
        "watch_common:\n"
        "pushq %rax\n pushq %r9\n pushq %r8\n pushq %rcx\n pushq %rdx\n pushq %rsi\n pushq %rdi\n"
        "subq $136, %rsp\n"
        "movdqu %xmm0, (%rsp)\n movdqu %xmm1, 16(%rsp)\n movdqu %xmm2, 32(%rsp)\n"
        "movdqu %xmm3, 48(%rsp)\n movdqu %xmm4, 64(%rsp)\n movdqu %xmm5, 80(%rsp)\n"
        "movdqu %xmm6, 96(%rsp)\n movdqu %xmm7, 112(%rsp)\n"
        "movq 192(%rsp), %rdi\n"
        "leaq 136(%rsp), %rsi\n"
        "call watch_note_call\n"
        "movq %rax, 192(%rsp)\n"
        "movdqu (%rsp), %xmm0\n movdqu 16(%rsp), %xmm1\n movdqu 32(%rsp), %xmm2\n"
        "movdqu 48(%rsp), %xmm3\n movdqu 64(%rsp), %xmm4\n movdqu 80(%rsp), %xmm5\n"
        "movdqu 96(%rsp), %xmm6\n movdqu 112(%rsp), %xmm7\n"
        "addq $136, %rsp\n"
        "popq %rdi\n popq %rsi\n popq %rdx\n popq %rcx\n popq %r8\n popq %r9\n popq %rax\n"
        "ret\n");
extern const uint8_t watch_thunks[] __attribute__((visibility("hidden")));
#endif

bool watch_slots(const uint8_t *id, unsigned int slots)
{
#if defined(__x86_64__)
    CUresult (*get)(const void **, const void *) = card_get("cuGetExportTable");
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), *table, from, end;
    const void *found = NULL;

    if (tables_count == TABLES || get(&found, id) != CUDA_SUCCESS || !found)
        return false;
    table = (uintptr_t *)(uintptr_t)found;
    slots = slots ? slots : (unsigned int)(table[0] / sizeof(*table));
    slots = slots < SLOTS ? slots : SLOTS;
    from = (uintptr_t)table & ~(page - 1);
    end = ((uintptr_t)(table + slots) + page - 1) & ~(page - 1);
    if (mprotect((void *)from, end - from, PROT_READ | PROT_WRITE) < 0)
        return false;
    memcpy(tables[tables_count].id, id, 16);
    for (unsigned int i = 0; i < slots; i++) {
        /* The size, and slots without a function, stay as they are. */
        if (table[i] < 65536)
            continue;
        tables[tables_count].functions[i] = table[i];
        table[i] = (uintptr_t)watch_thunks + 16ul * (tables_count * SLOTS + i);
    }
    tables_count++;
    return true;
#else
    (void)id;
    (void)slots;
    return false;
#endif
}

static bool is_watching;
static CUresult (*get_table)(const void **, const void *);
static CUresult (*get_function)(const char *, void **, int, cuuint64_t);
static CUresult (*get_function_2)(const char *, void **, int, cuuint64_t, int *);

static CUresult table_noted(const void **table, const void *id)
{
    struct watched *at;

    pthread_mutex_lock(&lock);
    at = id ? note(asked, &asked_count, id, 0) : NULL;
    if (at)
        at->calls++;
    pthread_mutex_unlock(&lock);
    return get_table(table, id);
}

static void *replace(const char *name, void *function);

static CUresult function_noted(const char *name, void **function, int version, cuuint64_t flags)
{
    CUresult result = get_function(name, function, version, flags);

    if (result == CUDA_SUCCESS && function)
        *function = replace(name, *function);
    return result;
}

static CUresult function_noted_2(const char *name, void **function, int version, cuuint64_t flags,
                                 int *status)
{
    CUresult result = get_function_2(name, function, version, flags, status);

    if (result == CUDA_SUCCESS && function)
        *function = !strcmp(name, "cuGetProcAddress") && version >= 12000
                        ? replace("cuGetProcAddress_v2", *function)
                        : replace(name, *function);
    return result;
}

/* Ours in place of the driver's, for what finds tables. */
static void *replace(const char *name, void *function)
{
    if (!is_watching || !function || !name || strncmp(name, "cuGet", 5))
        return function;
    if (!strcmp(name, "cuGetExportTable")) {
        get_table = (CUresult(*)(const void **, const void *))function;
        return (void *)table_noted;
    }
    if (!strcmp(name, "cuGetProcAddress")) {
        get_function = (CUresult(*)(const char *, void **, int, cuuint64_t))function;
        return (void *)function_noted;
    }
    if (!strcmp(name, "cuGetProcAddress_v2")) {
        get_function_2 = (CUresult(*)(const char *, void **, int, cuuint64_t, int *))function;
        return (void *)function_noted_2;
    }
    return function;
}

/* Libraries' calls come here: this is the program's own, and goes before the C library's. */
__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);

    if (!real)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym",
#if defined(__aarch64__)
                                                       "GLIBC_2.17"
#else
                                                       "GLIBC_2.2.5"
#endif
        );
    return replace(name, real(handle, name));
}

void watch_begin(void)
{
    is_watching = true;
}

const struct watched *watch_tables(unsigned int *count)
{
    *count = asked_count;
    return asked;
}

const struct watched *watch_calls(unsigned int *count)
{
    *count = called_count;
    return called;
}
