/* SPDX-License-Identifier: MIT */
/** Sizes as vgpuctl prints and takes them: powers of 1024, "8.0 GiB", "2G"; and shares. Numbers stay with their units. */

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function formatBytes(bytes: number): string {
    let value = bytes;
    let unit = 0;

    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    return `${unit < 3 ? Math.round(value) : value.toFixed(1)}\u00a0${units[unit]}`;
}

/** @param number - 50 for a half */
export function percent(number: number): string {
    return `${Math.round(number)}\u00a0%`;
}

/** Bytes; null: `text` is no size. */
export function parseBytes(text: string): number | null {
    const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(text.trim());

    if (!match)
        return null;
    const power = ["", "K", "M", "G", "T"].indexOf(match[2].toUpperCase());
    return Math.round(Number(match[1]) * 1024 ** power);
}

/** A size as the user would type it, so that a form can show what there is now. */
export function sizeInput(bytes: number): string {
    for (const [letter, power] of [["G", 3], ["M", 2], ["K", 1]] as const)
        if (bytes && bytes % 1024 ** power === 0)
            return `${bytes / 1024 ** power}${letter}`;
    return String(bytes);
}
