// SPDX-License-Identifier: MIT
/* Loads an image that nvcc made: driver FILE. */
#include "driver.h"

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    static char image[1 << 20];

    if (!file || fread(image, 1, sizeof(image) - 1, file) == 0)
        return 2;
    use(image);
    return 0;
}
