// SPDX-License-Identifier: MIT
/*
 * both-load ITERATIONS SECONDS: governor-load and cuda-load as two threads of one process, so that
 * Vulkan and CUDA are one member of a slice. Each prints what it prints by itself.
 */
#include <pthread.h>

int vulkan_main(int argc, char **argv);
int cuda_main(int argc, char **argv);

static void *run_vulkan(void *words)
{
    vulkan_main(6, words);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc != 3)
        return 2;
    char *of_vulkan[] = {"governor-load", "closed", "--iterations", argv[1], "--seconds",
                         argv[2],         NULL};
    char *of_cuda[] = {"cuda-load", "loop", "2000000", "2", argv[2], NULL};

    if (pthread_create(&thread, NULL, run_vulkan, of_vulkan))
        return 1;
    cuda_main(5, of_cuda);
    pthread_join(thread, NULL);
    return 0;
}
