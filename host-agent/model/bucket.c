/* SPDX-License-Identifier: MIT */
#include "host-agent/model/bucket.h"

void bucket_fill(Bucket *bucket, guint64 counter, gint64 now_us, gint64 leak_us)
{
    guint64 since = counter < bucket->seen ? 0 : bucket->seen;
    double leaked = bucket->known ? (double)(now_us - bucket->at) / (double)leak_us : 0;

    bucket->level = MAX(0, bucket->level - leaked);
    if (bucket->known)
        bucket->level += (double)(counter - since);
    bucket->known = TRUE;
    bucket->at = now_us;
    bucket->seen = counter;
}
