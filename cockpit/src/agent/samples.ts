/* SPDX-License-Identifier: MIT */
/** What slices used in the last minutes, from counters that the page has looked at while it was open. */

import type { Slice } from "./model";

/** One look: use since the look before. null: nobody tells. */
export interface Sample {
    /** Milliseconds since 1970. */
    at: number;
    /** Share of the GPU's time, 0 to 1. */
    gpu: number | null;
    /** Seconds waited for other slices' work, for each second. */
    waited: number | null;
    /** Bytes of GPU memory now. */
    vramUsed: number | null;
}

/** Ten minutes of looks, five seconds apart. */
const KEPT = 120;

function rate(before: number | null, now: number | null, seconds: number): number | null {
    if (before === null || now === null)
        return null;
    /* A counter below its last value has started again with its arbiter. */
    return now < before ? 0 : (now - before) / 1e9 / seconds;
}

/** By slice's UUID, the newest last. */
export class Samples {
    private last = new Map<string, { slice: Slice; at: number }>();
    private readonly kept = new Map<string, Sample[]>();

    /** Adds a look. Slices that are gone are forgotten. */
    add(slices: readonly Slice[], at: number) {
        const last = this.last;

        this.last = new Map(slices.map(slice => [slice.uuid, { slice, at }]));
        for (const uuid of this.kept.keys())
            if (!this.last.has(uuid))
                this.kept.delete(uuid);
        for (const slice of slices) {
            const before = last.get(slice.uuid);

            if (before && at > before.at)
                this.keep(slice, before.slice, at, (at - before.at) / 1000);
        }
    }

    private keep(now: Slice, before: Slice, at: number, seconds: number) {
        const list = this.kept.get(now.uuid) ?? [];

        list.push({
            at,
            gpu: rate(before.gpuTime, now.gpuTime, seconds),
            waited: rate(before.waited, now.waited, seconds),
            vramUsed: now.vramUsed,
        });
        this.kept.set(now.uuid, list.slice(-KEPT));
    }

    of(uuid: string): readonly Sample[] {
        return this.kept.get(uuid) ?? [];
    }
}
