/* SPDX-License-Identifier: MIT */
/** What vgpud says of the host, as the page has it. Sizes are bytes, times of work nanoseconds. */

export type Mode = "host" | "shared" | "passthrough" | "partitioned";

export interface Gpu {
    path: string;
    address: string;
    name: string;
    driver: string;
    mode: Mode;
    wantedMode: Mode;
    /** The mode that it is being switched to; empty: none. */
    switching: Mode | "";
    draining: boolean;
    vram: number;
    /** How much may be promised, overcommitment included. 0: not shared. */
    capacity: number;
    promisedVram: number;
    promisedCompute: number;
    healthy: boolean;
    healthReasons: string[];
    numaNode: number;
    sriovTotal: number;
    partitions: string[];
}

/** With the door vm it is a VM's vGPU. */
export interface Slice {
    uuid: string;
    door: "vm" | "vfio" | "native" | "guarded";
    name: string;
    gpu: string;
    type: string;
    tenant: string;
    class: string;
    vram: number;
    oversubscribe: number;
    compute: number;
    weight: number;
    cap: number;
    priority: number;
    /** Of a vGPU: closed, running, stopped and so on. */
    device: string;
    engine: string;
    failure: string;
    container: string;
    /** Processes that use the GPU by it. null: nobody tells. */
    members: number | null;
    /** libvirt's name of the VM that has it, or the name of its process. */
    vm: string;
    defined: boolean;
    autostart: boolean;
    /** null: nobody tells. */
    vramUsed: number | null;
    spilled: number | null;
    gpuTime: number | null;
    waited: number | null;
    throttled: number | null;
}

export interface SliceType {
    id: string;
    gpu: string;
    description: string;
}

/** Quotas are 0 if there is no limit. */
export interface Tenant {
    name: string;
    vram: number;
    compute: number;
    vgpus: number;
    models: string[];
    users: string[];
    usedVram: number;
    usedCompute: number;
    usedVgpus: number;
}

export interface ReportRow {
    tenant: string;
    uuid: string;
    type: string;
    gpu: string;
    hours: number;
    vramHours: number;
    computeHours: number;
    busyHours: number;
    vram: number;
    /** 0: not known. */
    peakVram: number;
    /** 0: none, or not known. */
    gpuSeconds: number;
    advice: string;
}

export interface ScheduleEntry {
    name: string;
    gpu: string;
    mode: Mode;
    /** Seconds since 1970; 0: never again. */
    next: number;
}

export interface HostEvent {
    at: Date;
    kind: string;
    gpu: string;
    vgpu: string;
    text: string;
}
