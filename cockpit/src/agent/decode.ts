/* SPDX-License-Identifier: MIT */
/** From D-Bus dictionaries (a{sv}) to model.ts. A key that is missing has its type's empty value. */

import type { Gpu, Mode, ReportRow, ScheduleEntry, Slice, SliceType, Tenant } from "./model";

export type Dict = Record<string, { v: unknown }>;

const text = (dict: Dict, key: string) => (dict[key]?.v ?? "") as string;
const number = (dict: Dict, key: string) => (dict[key]?.v ?? 0) as number;
const known = (dict: Dict, key: string) => (dict[key]?.v ?? null) as number | null;
const flag = (dict: Dict, key: string) => (dict[key]?.v ?? false) as boolean;
const list = (dict: Dict, key: string) => (dict[key]?.v ?? []) as string[];

export function decodeSlice(dict: Dict): Slice {
    return {
        uuid: text(dict, "Uuid"),
        gpu: text(dict, "Gpu"),
        type: text(dict, "Type"),
        tenant: text(dict, "Tenant"),
        class: text(dict, "Class"),
        door: text(dict, "Door") as Slice["door"],
        name: text(dict, "Name"),
        vram: number(dict, "Vram"),
        oversubscribe: number(dict, "Oversubscribe"),
        compute: number(dict, "Compute"),
        weight: number(dict, "Weight"),
        cap: number(dict, "Cap"),
        priority: number(dict, "Priority"),
        device: text(dict, "Device"),
        engine: text(dict, "Engine"),
        failure: text(dict, "Failure"),
        container: text(dict, "Container"),
        vm: text(dict, "Vm"),
        defined: flag(dict, "Defined"),
        autostart: flag(dict, "Autostart"),
        members: known(dict, "Members"),
        vramUsed: known(dict, "VramUsed"),
        spilled: known(dict, "Spilled"),
        gpuTime: known(dict, "GpuTime"),
        waited: known(dict, "Waited"),
        throttled: known(dict, "Throttled"),
    };
}

export function decodeType(dict: Dict): SliceType {
    return {
        id: text(dict, "Id"),
        gpu: text(dict, "Gpu"),
        description: text(dict, "Description"),
    };
}

export function decodeTenant(dict: Dict): Tenant {
    return {
        name: text(dict, "Name"),
        vram: number(dict, "Vram"),
        compute: number(dict, "Compute"),
        vgpus: number(dict, "Vgpus"),
        models: list(dict, "Models"),
        users: list(dict, "Users"),
        usedVram: number(dict, "UsedVram"),
        usedCompute: number(dict, "UsedCompute"),
        usedVgpus: number(dict, "UsedVgpus"),
    };
}

export function decodeReportRow(dict: Dict): ReportRow {
    return {
        tenant: text(dict, "Tenant"),
        uuid: text(dict, "Uuid"),
        type: text(dict, "Type"),
        gpu: text(dict, "Gpu"),
        hours: number(dict, "Hours"),
        vramHours: number(dict, "VramHours"),
        computeHours: number(dict, "ComputeHours"),
        busyHours: number(dict, "BusyHours"),
        vram: number(dict, "Vram"),
        peakVram: number(dict, "PeakVram"),
        gpuSeconds: number(dict, "GpuSeconds"),
        advice: text(dict, "Advice"),
    };
}

export function decodeScheduleEntry(dict: Dict): ScheduleEntry {
    return {
        name: text(dict, "Name"),
        gpu: text(dict, "Gpu"),
        mode: text(dict, "Mode") as Mode,
        next: number(dict, "Next"),
    };
}

/** vgpud 0.1 says 0 of a shared GPU as well; then it is the GPU's memory, without overcommitment. */
function capacity(proxy: CockpitProxy): number {
    return (proxy.Capacity || (proxy.Mode === "shared" ? proxy.Vram : 0)) as number;
}

/** A GPU's object on the bus: its properties have no variants around them. */
export function decodeGpu(proxy: CockpitProxy): Gpu {
    return {
        path: proxy.path,
        address: proxy.Address as string,
        name: proxy.Name as string,
        driver: proxy.Driver as string,
        mode: proxy.Mode as Mode,
        wantedMode: proxy.WantedMode as Mode,
        switching: proxy.Switching as Mode | "",
        draining: proxy.Draining as boolean,
        vram: proxy.Vram as number,
        capacity: capacity(proxy),
        promisedVram: proxy.PromisedVram as number,
        promisedCompute: proxy.PromisedCompute as number,
        healthy: proxy.Healthy as boolean,
        healthReasons: proxy.HealthReasons as string[],
        numaNode: proxy.NumaNode as number,
        sriovTotal: proxy.SriovTotal as number,
        partitions: proxy.Partitions as string[],
    };
}
