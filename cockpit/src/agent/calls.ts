/* SPDX-License-Identifier: MIT */
/** vgpud's methods. A refusal is thrown as it came: its message is a sentence for the user. */

import {
    decodeReportRow, decodeScheduleEntry, decodeSlice, decodeTenant, decodeType, type Dict,
} from "./decode";
import type { Mode } from "./model";

const MANAGER = "/org/mdev_vgpu/manager";
const MANAGER_INTERFACE = "org.mdev_vgpu.Host1.Manager";
const GPU_INTERFACE = "org.mdev_vgpu.Host1.Gpu";
const NOT_AUTHORIZED = "org.mdev_vgpu.Host1.Error.NotAuthorized";

/** The D-Bus types of the keys that requests may have. */
const keyTypes = {
    Autostart: "b", Cap: "u", Class: "s", Compute: "u", Count: "u", Define: "b", Door: "s", Drain: "b", DryRun: "b",
    Ephemeral: "b", Force: "b", Gpus: "as", Models: "as", Name: "s", Oversubscribe: "t", Partitions: "u",
    Priority: "u", Tenant: "s", Timeout: "u", Type: "s", Users: "as", Vgpus: "u", Vram: "t", Weight: "u",
} as const;

/** What is undefined is left out of the call. */
export type Request = { [key in keyof typeof keyTypes]?: string | number | boolean | string[] | undefined };

function toDict(request: Request): Record<string, CockpitVariant> {
    const dict: Record<string, CockpitVariant> = {};

    for (const [key, value] of Object.entries(request))
        if (value !== undefined)
            dict[key] = cockpit.variant(keyTypes[key as keyof typeof keyTypes], value);
    return dict;
}

export class Calls {
    constructor(private readonly client: CockpitDBusClient) {}

    private async manager(method: string, type: string, args: unknown[]): Promise<unknown> {
        return (await this.client.call(MANAGER, MANAGER_INTERFACE, method, args, { type }))[0];
    }

    /** What a method lists. For a user who may not see all of the host, nothing. */
    private async ifAllowed(method: string, type: string, values: unknown[]): Promise<unknown> {
        try {
            return await this.manager(method, type, values);
        } catch (refusal) {
            if ((refusal as Error).name === NOT_AUTHORIZED)
                return [];
            throw refusal;
        }
    }

    private async list<Item>(method: string, decode: (dict: Dict) => Item, type = "",
                             values: unknown[] = []): Promise<Item[]> {
        return (await this.ifAllowed(method, type, values) as Dict[]).map(decode);
    }

    /** Slices with all doors, sorted by GPU, tenant and UUID. */
    async listSlices() {
        const slices = await this.list("FindSlices", decodeSlice, "a{sv}", [{}]);

        return slices.sort((a, b) => a.gpu.localeCompare(b.gpu) || a.tenant.localeCompare(b.tenant) ||
            a.uuid.localeCompare(b.uuid));
    }

    listTypes() {
        return this.list("ListTypes", decodeType);
    }

    listTenants() {
        return this.list("ListTenants", decodeTenant);
    }

    listSchedule() {
        return this.list("ListSchedule", decodeScheduleEntry);
    }

    /** @param month - "2026-11" */
    async report(month: string) {
        return (await this.manager("Report", "ss", ["", month]) as Dict[]).map(decodeReportRow);
    }

    createSlice(request: Request) {
        return this.manager("CreateSlices", "aa{sv}", [[toDict(request)]]);
    }

    changeSlice(uuid: string, changes: Request) {
        return this.manager("SetSlice", "sa{sv}", [uuid, toDict(changes)]);
    }

    removeSlice(uuid: string, options: Request) {
        return this.manager("RemoveSlice", "sa{sv}", [uuid, toDict(options)]);
    }

    startSlice(uuid: string) {
        return this.manager("StartSlice", "sa{sv}", [uuid, {}]);
    }

    setTenant(name: string, quotas: Request) {
        return this.manager("SetTenant", "sa{sv}", [name, toDict(quotas)]);
    }

    removeTenant(name: string) {
        return this.manager("RemoveTenant", "s", [name]);
    }

    private async gpu(path: string, method: string, type: string, args: unknown[]): Promise<unknown> {
        return (await this.client.call(path, GPU_INTERFACE, method, args, { type }))[0];
    }

    /** Answers when the switch is over, with what was done, or with `DryRun` would be done. */
    async setMode(path: string, mode: Mode, options: Request) {
        return await this.gpu(path, "SetMode", "sa{sv}", [mode, toDict(options)]) as string[];
    }

    async listUsers(path: string) {
        return await this.gpu(path, "ListUsers", "", []) as string[];
    }

    drain(path: string, on: boolean) {
        return this.gpu(path, "Drain", "b", [on]);
    }

    clearHealth(path: string) {
        return this.gpu(path, "ClearHealth", "", []);
    }
}
