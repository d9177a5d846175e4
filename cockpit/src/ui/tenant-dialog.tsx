/* SPDX-License-Identifier: MIT */
/** Makes a tenant, or changes its quotas. */

import { useState } from "react";

import { host } from "../agent/host";
import type { Tenant } from "../agent/model";
import { sizeInput } from "../lib/units";
import { Dialog } from "./dialog";
import { isNumber, isSize, NumberField, numberOf, SizeField, sizeOf, TextField } from "./fields";

/** An empty field is no limit, which vgpud has as 0. */
function shown(number: number): string {
    return number ? String(number) : "";
}

function words(text: string): string[] {
    return text.split(/[\s,]+/).filter(word => word);
}

/** @param tenant - null: a new one */
export function TenantDialog({ tenant, close }: { tenant: Tenant | null; close: () => void }) {
    const [name, setName] = useState(tenant?.name ?? "");
    const [vram, setVram] = useState(tenant?.vram ? sizeInput(tenant.vram) : "");
    const [compute, setCompute] = useState(shown(tenant?.compute ?? 0));
    const [vgpus, setVgpus] = useState(shown(tenant?.vgpus ?? 0));
    const [models, setModels] = useState(tenant?.models.join(", ") ?? "");
    const [users, setUsers] = useState(tenant?.users.join(", ") ?? "");

    async function save() {
        await host.calls.setTenant(name, {
            Vram: sizeOf(vram) ?? 0,
            Compute: numberOf(compute) ?? 0,
            Vgpus: numberOf(vgpus) ?? 0,
            Models: words(models),
            Users: words(users),
        });
        host.refresh();
    }

    return (
        <Dialog title={tenant ? `Quotas of ${tenant.name}` : "Make a tenant"} action={tenant ? "Change" : "Make"}
                perform={save} close={close}
                ready={!!name && isSize(vram) && isNumber(compute) && isNumber(vgpus)}>
            {!tenant && <TextField id="tenant-name" label="Name" value={name} onChange={setName} required />}
            <SizeField id="tenant-vram" label="GPU memory" value={vram} onChange={setVram} help="Empty: no limit." />
            <NumberField id="tenant-compute" label="Compute, in per cent" value={compute} onChange={setCompute}
                         help="100 is one whole GPU. Empty: no limit." />
            <NumberField id="tenant-vgpus" label="vGPUs and slices" value={vgpus} onChange={setVgpus}
                         help="How many it may have. Empty: no limit." />
            <TextField id="tenant-models" label="Models of GPUs" value={models} onChange={setModels}
                       help="Patterns such as 1002:* with commas between them. Empty: any." />
            <TextField id="tenant-users" label="Users" value={users} onChange={setUsers}
                       help="They may make, change and remove the tenant's slices." />
        </Dialog>
    );
}
