/* SPDX-License-Identifier: MIT */
/** The host as the page shows it, kept up to date. Components read it by useHost(). */

import { useSyncExternalStore } from "react";

import { Calls } from "./calls";
import { Connection, type Link } from "./connection";
import { decodeGpu } from "./decode";
import type { Gpu, HostEvent, Mode, ScheduleEntry, Slice, SliceType, Tenant } from "./model";
import { Samples } from "./samples";

const GPU_INTERFACE = "org.mdev_vgpu.Host1.Gpu";
const LOOK_MS = 5000;
const KEPT_EVENTS = 100;

/** A switch of a GPU's mode that this page has seen. */
export interface SwitchProgress {
    target: Mode;
    steps: string[];
    /** What vgpud refused it with, or why it was undone. */
    error?: string;
    done: boolean;
}

export interface HostState {
    link: Link;
    /** null: not known yet. */
    admin: boolean | null;
    /** The first lists have come. */
    loaded: boolean;
    /** Why the lists could not be read. */
    error: string;
    gpus: Gpu[];
    slices: Slice[];
    types: SliceType[];
    tenants: Tenant[];
    schedule: ScheduleEntry[];
    /** The newest first; since the page was opened. */
    events: HostEvent[];
    /** By the GPU's address. */
    switches: Record<string, SwitchProgress>;
}

export class Host {
    readonly samples = new Samples();
    private state: HostState = {
        link: "connecting", admin: null, loaded: false, error: "", gpus: [], slices: [], types: [], tenants: [],
        schedule: [], events: [], switches: {},
    };

    private readonly listeners = new Set<() => void>();
    private readonly connection: Connection;
    private client: CockpitDBusClient | null = null;
    private refreshing = false;
    private again = false;

    constructor() {
        const permission = cockpit.permission({ admin: true });

        this.connection = new Connection({ up: client => this.up(client), away: () => this.away() });
        permission.addEventListener("changed", () => {
            this.set({ admin: permission.allowed });
            this.connect();
        });
        this.set({ admin: permission.allowed });
        this.connect();
        setInterval(() => this.look(), LOOK_MS);
        cockpit.addEventListener("visibilitychange", () => this.look());
    }

    subscribe = (listener: () => void) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    };

    get = () => this.state;

    /** vgpud's methods. Only while it is there. */
    get calls(): Calls {
        if (!this.client)
            throw new Error("vgpud is not running");
        return new Calls(this.client);
    }

    /** Asks for vgpud, and has it started if it is not running. */
    connect() {
        this.set({ link: "connecting" });
        this.connection.open();
    }

    /** Reads all lists again. Calls that come meanwhile are one more. */
    async refresh(): Promise<void> {
        if (this.refreshing) {
            this.again = true;
            return;
        }
        this.refreshing = true;
        do {
            this.again = false;
            await this.read();
        } while (this.again);
        this.refreshing = false;
    }

    private async read() {
        const client = this.client;

        if (!client)
            return;
        try {
            const { calls } = this;
            const [slices, types, tenants, schedule] = await Promise.all([
                calls.listSlices(), calls.listTypes(), calls.listTenants(), calls.listSchedule(),
            ]);
            if (client !== this.client)
                return;
            this.samples.add(slices, Date.now());
            this.set({ slices, types, tenants, schedule, loaded: true, error: "" });
        } catch (error) {
            if (client === this.client)
                this.set({ loaded: true, error: (error as Error).message });
        }
    }

    /** Switches a GPU's mode. Its steps come as they are done, to whoever looks at the GPU's card. */
    async setMode(gpu: Gpu, target: Mode, options: { Drain?: boolean; Timeout?: number; Partitions?: number }) {
        this.setSwitch(gpu.address, { target, steps: [], done: false });
        try {
            const steps = await this.calls.setMode(gpu.path, target, options);

            this.setSwitch(gpu.address, { target, steps, done: true });
        } catch (error) {
            const steps = this.state.switches[gpu.address]?.steps ?? [];

            this.setSwitch(gpu.address, { target, steps, done: true, error: (error as Error).message });
        }
        await this.refresh();
    }

    /** The user has read how a switch ended. */
    forgetSwitch(address: string) {
        const { [address]: _gone, ...switches } = this.state.switches;

        this.set({ switches });
    }

    private set(change: Partial<HostState>) {
        this.state = { ...this.state, ...change };
        for (const listener of this.listeners)
            listener();
    }

    private setSwitch(address: string, progress: SwitchProgress) {
        this.set({ switches: { ...this.state.switches, [address]: progress } });
    }

    private up(client: CockpitDBusClient) {
        const proxies = client.proxies(GPU_INTERFACE, "/org/mdev_vgpu");
        const readGpus = () => {
            const gpus = Object.values(proxies).filter((proxy): proxy is CockpitProxy =>
                (proxy as CockpitProxy | null)?.valid === true).map(decodeGpu);

            if (client === this.client)
                this.set({ gpus: gpus.sort((a, b) => a.address.localeCompare(b.address)) });
        };

        this.client = client;
        client.subscribe({ member: "Event", path: "/org/mdev_vgpu/manager" }, (_path, _iface, _signal, args) =>
            this.happened(args as [string, string, string, string]));
        proxies.wait(() => {
            readGpus();
            if (client === this.client)
                this.set({ link: "up" });
            this.refresh();
        });
        for (const name of ["added", "changed", "removed"] as const)
            proxies.addEventListener(name, readGpus);
        proxies.addEventListener("added", (_event, proxy) =>
            proxy.addEventListener("Progress", (_signal, step) => this.progressed(proxy.path, step as string)));
    }

    private away() {
        this.client = null;
        this.set({ link: "away" });
    }

    private look() {
        if (!cockpit.hidden && this.client)
            this.refresh();
    }

    private happened([kind, gpu, vgpu, text]: [string, string, string, string]) {
        const event = { at: new Date(), kind, gpu, vgpu, text };

        this.set({ events: [event, ...this.state.events].slice(0, KEPT_EVENTS) });
        this.refresh();
    }

    /** A step of a switch, whoever asked for it. */
    private progressed(path: string, step: string) {
        const gpu = this.state.gpus.find(one => one.path === path);

        if (!gpu)
            return;
        const before = this.state.switches[gpu.address];
        const steps = before && !before.done ? before.steps : [];
        const target = before && !before.done ? before.target : gpu.switching || gpu.wantedMode;

        this.setSwitch(gpu.address, { target, steps: [...steps, step], done: false });
    }
}

export const host = new Host();

export function useHost(): HostState {
    return useSyncExternalStore(host.subscribe, host.get);
}
