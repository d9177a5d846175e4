/* SPDX-License-Identifier: MIT */
/** Words of the page for what vgpud calls by short names. */

import type { Gpu, Mode, Slice } from "../agent/model";

export const modeWords: Record<Mode, string> = {
    host: "Host only",
    shared: "Shared",
    passthrough: "Passed through",
    partitioned: "Partitioned",
};

export const modeHelp: Record<Mode, string> = {
    host: "The host's own programs use it. No VM and no slice does.",
    shared: "Cut into vGPUs for VMs and slices for containers.",
    passthrough: "Bound to vfio-pci, for one VM as a whole.",
    partitioned: "Split into SR-IOV virtual functions or MIG instances.",
};

/** The GPU's own name if its vendor put one in brackets, as in "Navi 21 [Radeon RX 6800]". */
export function gpuName(gpu: Gpu): string {
    const names = [...gpu.name.matchAll(/\[([^\]]+)\]/g)].map(match => match[1]).filter(name => name !== "AMD/ATI");

    return names.pop() ?? (gpu.name || gpu.address);
}

/** What people call a slice: its name, or the beginning of its UUID. */
export function sliceName(slice: Slice): string {
    return slice.name || slice.uuid.slice(0, 8);
}

/** The program that `vgpuctl run` started in the slice: vgpud writes it as "blender[4200]". null: it is a container's. */
function program(slice: Slice): { name: string; pid: string } | null {
    const match = /^(.*)\[(\d+)\]$/.exec(slice.container);

    return match && { name: match[1], pid: match[2] };
}

export function sliceKind(slice: Slice): string {
    if (slice.door === "vm")
        return "vGPU for a VM";
    return `${program(slice) ? "Slice of a program" : "Container slice"}, ${slice.door}`;
}

/** Who has it now; empty: nobody. */
export function sliceUser(slice: Slice): string {
    const run = program(slice);

    if (slice.vm)
        return `VM ${slice.vm}`;
    if (run)
        return `${run.name} (process ${run.pid})`;
    if (slice.container)
        return `container ${slice.container}`;
    return slice.members ? count(slice.members, "process", "processes") : "";
}

/** A type's name without the driver's name in front: "half" of "amdgpu-vgpu-half". */
export function typeName(type: string): string {
    return type.replace(/^.*?vgpu-/, "") || "own size";
}

export function count(number: number, one: string, many = `${one}s`): string {
    return `${number} ${number === 1 ? one : many}`;
}

/** "", or ", and so does the quota of red". */
export function tenantNote(slice: Slice): string {
    return slice.tenant && `, and so does the quota of ${slice.tenant}`;
}
