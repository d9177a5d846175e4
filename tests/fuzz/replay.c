/* SPDX-License-Identifier: MIT */
/* replay DIR…: gives a fuzz target every file of these folders once, where libFuzzer is not wanted.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static unsigned replay_dir(const char *path)
{
    static uint8_t data[INPUT_BYTES];
    DIR *dir = opendir(path);
    struct dirent *entry;
    unsigned n = 0;

    while (dir && (entry = readdir(dir))) {
        char name[4096];
        FILE *file;

        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        file = fopen(name, "rb");
        if (!file)
            continue;
        LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), file));
        fclose(file);
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    unsigned n = 0;

    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        n += replay_dir(argv[i]);
    printf("%u inputs\n", n);
    return n ? EXIT_SUCCESS : EXIT_FAILURE;
}
