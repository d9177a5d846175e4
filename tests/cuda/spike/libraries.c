// SPDX-License-Identifier: MIT
/*
 * Unknowns 4 and 5: which tables of the driver NVIDIA's libraries ask for, and which slots they
 * call. Those that are known are named here; each other one is said, with its arguments.
 */
#include "spike.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* As they were seen of the runtime's versions 11.2 to 13.0, and of cuFFT. @slots: a bit for each
 * that the library serves or that other projects have published. */
static const struct known {
    uint8_t id[16];
    uint64_t slots;
    unsigned int count; /* of slots, where the table does not begin with its size */
} knowns[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
      0xf9},
     1u << 1 | 1u << 2 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 12,
     0},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     1u << 2 | 1u << 6,
     0},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     0,
     0},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     1u << 0 | 1u << 1 | 1u << 2,
     3},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     1u << 2 | 1u << 3,
     0},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     1u << 7,
     0},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     1u << 4,
     0},
};

/* Tables of which the runtime's calls are not watched, as it looks at them itself. */
static const uint8_t unwatched[][4] = {{0xd4, 0x08, 0x20, 0x55}, {0xf8, 0xcf, 0xf9, 0x51}};

static const struct known *find_known(const uint8_t *id)
{
    for (size_t i = 0; i < sizeof(knowns) / sizeof(knowns[0]); i++)
        if (!memcmp(knowns[i].id, id, 16))
            return &knowns[i];
    return NULL;
}

static bool is_unwatched(const uint8_t *id)
{
    for (size_t i = 0; i < sizeof(unwatched) / sizeof(unwatched[0]); i++)
        if (!memcmp(unwatched[i], id, 4))
            return true;
    return false;
}

/* A text that does not end with an error when it is full. */
struct text {
    char at[700];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add_text(struct text *text, const char *format,
                                                           ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(text->at + text->used, sizeof(text->at) - text->used, format, list);
    va_end(list);
    if (length > 0)
        text->used += (size_t)length;
    if (text->used >= sizeof(text->at))
        text->used = sizeof(text->at) - 1;
}

static void add_id(struct text *text, const uint8_t *id)
{
    add_text(text, "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
}

/* What was asked and called; false: some of it is not known. */
static bool describe(struct text *text)
{
    unsigned int count;
    const struct watched *list = watch_tables(&count);
    bool is_known = true;

    for (unsigned int i = 0; i < count; i++) {
        if (find_known(list[i].id) || is_unwatched(list[i].id))
            continue;
        is_known = false;
        add_text(text, "; unknown table ");
        for (unsigned int byte = 0; byte < 16; byte++)
            add_text(text, "%02x", list[i].id[byte]);
    }
    list = watch_calls(&count);
    for (unsigned int i = 0; i < count; i++) {
        const struct known *known = find_known(list[i].id);
        bool is_slot_known = known && list[i].slot < 64 && known->slots >> list[i].slot & 1;

        add_text(text, is_slot_known ? "; " : "; unknown slot ");
        add_id(text, list[i].id);
        add_text(text, "[%u] x%u (%s)", list[i].slot, list[i].calls, list[i].arguments);
        is_known &= is_slot_known;
    }
    return is_known;
}

static void watch_known(bool cufft_alone)
{
    size_t first = cufft_alone ? 5 : 0;

    watch_begin();
    for (size_t i = first; i < sizeof(knowns) / sizeof(knowns[0]); i++)
        watch_slots(knowns[i].id, knowns[i].count);
}

#define CALL(library, name, ...) ((int (*)(__VA_ARGS__))dlsym(library, #name))

/* A transform; the error of the first call that fails. */
static int transform(void *library)
{
    int (*plan)(int *, int, int, int) = CALL(library, cufftPlan1d, int *, int, int, int);
    int (*carry_out)(int, void *, void *, int) =
        CALL(library, cufftExecC2C, int, void *, void *, int);
    void *at = (void *)(uintptr_t)card_allocate(8 * 1024);
    int handle = 0, result;

    if (!plan || !carry_out)
        return -1;
    spike_step("cuFFT makes a plan");
    result = plan(&handle, 1024, 0x29, 1);
    spike_step("cuFFT transforms");
    return result ? result : carry_out(handle, at, at, -1);
}

/* A product of matrices of 64 by 64. */
static int multiply(void *library)
{
    int (*create)(void **) = CALL(library, cublasCreate_v2, void **);
    int (*gemm)(void *, int, int, int, int, int, const float *, const void *, int, const void *,
                int, const float *, void *, int) =
        CALL(library, cublasSgemm_v2, void *, int, int, int, int, int, const float *, const void *,
             int, const void *, int, const float *, void *, int);
    const void *from = (const void *)(uintptr_t)card_allocate(64 * 64 * 4);
    void *to = (void *)(uintptr_t)card_allocate(64 * 64 * 4), *handle = NULL;
    const float one = 1, none = 0;
    int result;

    if (!create || !gemm)
        return -1;
    spike_step("cuBLAS begins");
    result = create(&handle);
    spike_step("cuBLAS multiplies");
    return result ? result
                  : gemm(handle, 0, 0, 64, 64, 64, &one, from, 64, from, 64, &none, to, 64);
}

void ask_tables(void)
{
    static const char *const ffts[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10", NULL};
    static const char *const blases[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                         NULL};
    const char *fft_name = "no cuFFT", *blas_name = "no cuBLAS";
    void *fft = spike_library(ffts, &fft_name), *blas = spike_library(blases, &blas_name);
    struct text text = {.used = 0};
    int fft_result = 0, blas_result = 0;
    bool is_known;

    if (!fft && !blas)
        spike_verdict(VERDICT_NOT_ASKED,
                      "there is neither cuFFT nor cuBLAS; --libraries says where");
    card_open();
    watch_known(true);
    if (fft)
        fft_result = transform(fft);
    if (blas)
        blas_result = multiply(blas);
    spike_step("what was called is told");
    DRIVER(cuCtxSynchronize, void)();
    add_text(&text, "%s: result %d; %s: result %d", fft_name, fft_result, blas_name, blas_result);
    is_known = describe(&text);
    /* What a library would have called after its error is not known. */
    if (is_known && (fft_result || blas_result))
        spike_verdict(VERDICT_NOT_ASKED, "%s", text.at);
    spike_verdict(is_known ? VERDICT_YES : VERDICT_NO, "%s", text.at);
}

/* Memory, a fill and a wait: 0, or the error of the first call that fails. */
static int run_runtime(void *library)
{
    int (*count)(int *) = CALL(library, cudaGetDeviceCount, int *);
    int (*allocate)(void **, size_t) = CALL(library, cudaMalloc, void **, size_t);
    int (*fill)(void *, int, size_t) = CALL(library, cudaMemset, void *, int, size_t);
    int (*wait)(void) = (int (*)(void))dlsym(library, "cudaDeviceSynchronize");
    int devices = 0, result;
    void *at = NULL;

    if (!count || !allocate || !fill || !wait)
        return -1;
    result = count(&devices);
    if (!result)
        result = allocate(&at, 4096);
    if (!result)
        result = fill(at, 1, 4096);
    return result ? result : wait();
}

/* Each that is there, one after the other: what one has done to the process the next one finds. */
void ask_runtimes(void)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
    struct text text = {.used = 0};
    unsigned int found = 0, failed = 0;
    bool is_known;

    card_load();
    watch_known(false);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *const one[] = {names[i], NULL};
        const char *name;
        void *library = spike_library(one, &name);
        int result;

        if (!library)
            continue;
        spike_step("%s runs", name);
        result = run_runtime(library);
        add_text(&text, "%s%s: result %d", found++ ? ", " : "", name, result);
        failed += result != 0;
    }
    if (!found)
        spike_verdict(VERDICT_NOT_ASKED, "there is no libcudart.so; --libraries says where");
    is_known = describe(&text);
    if (is_known && failed)
        spike_verdict(VERDICT_NOT_ASKED, "%s", text.at);
    spike_verdict(is_known ? VERDICT_YES : VERDICT_NO, "%s", text.at);
}
