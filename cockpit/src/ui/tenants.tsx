/* SPDX-License-Identifier: MIT */
/** Tenants, their quotas, and what they have of them. */

import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";
import { Progress, ProgressSize } from "@patternfly/react-core/dist/esm/components/Progress";
import { Toolbar, ToolbarContent, ToolbarItem } from "@patternfly/react-core/dist/esm/components/Toolbar";
import { useState } from "react";

import { host, useHost } from "../agent/host";
import type { Tenant } from "../agent/model";
import { formatBytes, percent } from "../lib/units";
import { tenantColor } from "../lib/tenants";
import { ActionMenu } from "./action-menu";
import { Dialog } from "./dialog";
import { type Column, Table } from "./table";
import { TenantDialog } from "./tenant-dialog";

type Open = { what: "set"; tenant: Tenant | null } | { what: "remove"; tenant: Tenant } | null;

/** What is used of a quota; without a quota, only what is used. */
function Quota({ label, used, quota, words }: {
    label: string; used: number; quota: number; words: (number: number) => string;
}) {
    if (!quota)
        return <>{words(used)}, no limit</>;
    return (
        <>
            {words(used)} of {words(quota)}
            <Progress aria-label={label} value={Math.min(100 * used / quota, 100)} size={ProgressSize.sm}
                      measureLocation="none" valueText={`${words(used)} of ${words(quota)}`} />
        </>
    );
}

function columns(names: readonly string[], open: (open: Open) => void): Column<Tenant>[] {
    return [
        {
            title: "Name",
            cell: ({ name }) => (
                <>
                    <span className="vgpu-swatch" style={{ backgroundColor: tenantColor(name, names) }} />
                    <Button variant="link" isInline onClick={() => cockpit.location.go(["slices"], { tenant: name })}>
                        {name}
                    </Button>
                </>
            ),
        },
        {
            title: "Memory",
            cell: tenant => <Quota label={`Memory of ${tenant.name}`} used={tenant.usedVram} quota={tenant.vram}
                                   words={formatBytes} />,
        },
        {
            title: "Compute",
            cell: tenant => <Quota label={`Compute of ${tenant.name}`} used={tenant.usedCompute} quota={tenant.compute}
                                   words={percent} />,
        },
        {
            title: "Slices",
            cell: tenant => <Quota label={`Slices of ${tenant.name}`} used={tenant.usedVgpus} quota={tenant.vgpus}
                                   words={String} />,
        },
        { title: "Models", cell: ({ models }) => models.join(", ") || "any" },
        { title: "Users", cell: ({ users }) => users.join(", ") || "administrators only" },
        {
            title: "Actions", actions: true,
            cell: tenant => (
                <ActionMenu label={`Actions for tenant ${tenant.name}`} actions={[
                    { label: "Change…", run: () => open({ what: "set", tenant }) },
                    { label: "Remove…", run: () => open({ what: "remove", tenant }), danger: true },
                ]} />
            ),
        },
    ];
}

function RemoveTenant({ tenant, close }: { tenant: Tenant; close: () => void }) {
    async function remove() {
        await host.calls.removeTenant(tenant.name);
        host.refresh();
    }

    return (
        <Dialog title={`Remove tenant ${tenant.name}?`} action="Remove" danger perform={remove} close={close}>
            <p>Its quotas and users are forgotten. A tenant that has slices is not removed.</p>
        </Dialog>
    );
}

export function Tenants() {
    const { tenants } = useHost();
    const [open, setOpen] = useState<Open>(null);

    return (
        <>
            <Toolbar>
                <ToolbarContent>
                    <ToolbarItem align={{ default: "alignEnd" }}>
                        <Button variant="primary" onClick={() => setOpen({ what: "set", tenant: null })}>
                            Make a tenant
                        </Button>
                    </ToolbarItem>
                </ToolbarContent>
            </Toolbar>
            <Table label="Tenants" rows={tenants} rowKey={({ name }) => name}
                   columns={columns(tenants.map(({ name }) => name), setOpen)}
                   empty={
                       <EmptyState titleText="No tenants" headingLevel="h2" variant="sm">
                           <EmptyStateBody>
                               A tenant is a name that slices are counted for, with quotas and users.
                           </EmptyStateBody>
                       </EmptyState>
                   } />
            {open?.what === "set" && <TenantDialog tenant={open.tenant} close={() => setOpen(null)} />}
            {open?.what === "remove" && <RemoveTenant tenant={open.tenant} close={() => setOpen(null)} />}
        </>
    );
}
