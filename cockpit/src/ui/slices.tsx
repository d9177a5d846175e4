/* SPDX-License-Identifier: MIT */
/** All vGPUs and slices, and what can be done with each. */

import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";
import { Toolbar, ToolbarContent, ToolbarItem } from "@patternfly/react-core/dist/esm/components/Toolbar";
import { useState } from "react";

import { host, useHost } from "../agent/host";
import type { Slice, Tenant } from "../agent/model";
import { formatBytes, percent } from "../lib/units";
import { tenantColor, tenantLabel } from "../lib/tenants";
import { sliceKind, sliceName, sliceUser, typeName } from "../lib/words";
import { type Action, ActionMenu } from "./action-menu";
import { Refusal } from "./dialog";
import { SliceChange } from "./slice-change";
import { SliceCreate } from "./slice-create";
import { SliceRemove } from "./slice-remove";
import { type Column, Table } from "./table";

type Open = { what: "create" } | { what: "change" | "remove"; slice: Slice } | null;

function State({ slice }: { slice: Slice }) {
    const user = sliceUser(slice);

    if (slice.engine === "failed")
        return <Label isCompact status="danger">Failed: {slice.failure}</Label>;
    if (slice.device === "stopped")
        return <Label isCompact color="grey">Stopped</Label>;
    return user ? <Label isCompact color="green">Used by {user}</Label>
        : <Label isCompact color="grey">Not used</Label>;
}

function columns(tenants: readonly string[], actions: (slice: Slice) => Action[]): Column<Slice>[] {
    return [
        { title: "Name", cell: slice => <><b>{sliceName(slice)}</b><div className="vgpu-uuid">{slice.uuid}</div></> },
        { title: "Kind", cell: slice => <>{sliceKind(slice)}<div className="vgpu-note">{typeName(slice.type)}</div></> },
        { title: "GPU", cell: slice => <span className="vgpu-address">{slice.gpu}</span> },
        {
            title: "Tenant",
            cell: slice => (
                <>
                    <span className="vgpu-tenant">
                        <span className="vgpu-swatch" style={{ backgroundColor: tenantColor(slice.tenant, tenants) }} />
                        {tenantLabel(slice.tenant)}
                    </span>
                    <div className="vgpu-note">{slice.class}</div>
                </>
            ),
        },
        {
            title: "Memory",
            cell: slice => (
                <>
                    {formatBytes(slice.vram)}
                    {slice.vramUsed !== null && <div className="vgpu-note">{formatBytes(slice.vramUsed)} used</div>}
                </>
            ),
        },
        {
            title: "Share",
            cell: slice => <>weight{"\u00a0"}{slice.weight}<div className="vgpu-note">cap {percent(slice.cap)}</div></>,
        },
        { title: "State", cell: slice => <State slice={slice} /> },
        {
            title: "Actions", actions: true,
            cell: slice => <ActionMenu label={`Actions for ${sliceName(slice)}`} actions={actions(slice)} />,
        },
    ];
}

function Filters({ gpu, tenant, gpus, tenants, create }: {
    gpu: string; tenant: string; gpus: readonly string[]; tenants: readonly Tenant[]; create: () => void;
}) {
    const go = (options: { gpu: string; tenant: string }) => cockpit.location.go(["slices"], Object.fromEntries(
        Object.entries(options).filter(([, value]) => value)));

    return (
        <Toolbar>
            <ToolbarContent>
                <ToolbarItem>
                    <FormSelect aria-label="GPU" value={gpu} onChange={(_event, chosen) => go({ gpu: chosen, tenant })}>
                        <FormSelectOption value="" label="All GPUs" />
                        {gpus.map(address => <FormSelectOption key={address} value={address} label={address} />)}
                    </FormSelect>
                </ToolbarItem>
                <ToolbarItem>
                    <FormSelect aria-label="Tenant" value={tenant}
                                onChange={(_event, chosen) => go({ gpu, tenant: chosen })}>
                        <FormSelectOption value="" label="All tenants" />
                        {tenants.map(({ name }) => <FormSelectOption key={name} value={name} label={name} />)}
                    </FormSelect>
                </ToolbarItem>
                <ToolbarItem align={{ default: "alignEnd" }}>
                    <Button variant="primary" onClick={create}>Make a slice</Button>
                </ToolbarItem>
            </ToolbarContent>
        </Toolbar>
    );
}

function Dialogs({ open, gpu, close }: { open: Open; gpu: string; close: () => void }) {
    if (open?.what === "create")
        return <SliceCreate gpu={gpu} close={close} />;
    if (open?.what === "change")
        return <SliceChange slice={open.slice} close={close} />;
    return open && <SliceRemove slice={open.slice} close={close} />;
}

export function Slices({ options }: { options: Record<string, string> }) {
    const { slices, gpus, tenants } = useHost();
    const [open, setOpen] = useState<Open>(null);
    const [error, setError] = useState("");
    const { gpu = "", tenant = "" } = options;
    const shown = slices.filter(slice => (!gpu || slice.gpu === gpu) && (!tenant || slice.tenant === tenant));

    async function start(slice: Slice) {
        setError("");
        try {
            await host.calls.startSlice(slice.uuid);
            host.refresh();
        } catch (refusal) {
            setError((refusal as Error).message);
        }
    }

    function actions(slice: Slice): Action[] {
        return [
            ...(slice.device === "stopped" ? [{ label: "Start", run: () => start(slice) }] : []),
            { label: "Change…", run: () => setOpen({ what: "change", slice }) },
            { label: "Remove…", run: () => setOpen({ what: "remove", slice }), danger: true },
        ];
    }

    return (
        <>
            <Filters gpu={gpu} tenant={tenant} gpus={gpus.map(({ address }) => address)} tenants={tenants}
                     create={() => setOpen({ what: "create" })} />
            <Refusal error={error} />
            <Table label="vGPUs and slices" rows={shown} rowKey={slice => slice.uuid}
                   columns={columns(tenants.map(({ name }) => name), actions)}
                   empty={
                       <EmptyState titleText="No slices" headingLevel="h2" variant="sm">
                           <EmptyStateBody>
                               {slices.length ? "No slice fits what was chosen above."
                                   : "A slice is a part of a shared GPU, for a VM or a container."}
                           </EmptyStateBody>
                       </EmptyState>
                   } />
            <Dialogs open={open} gpu={gpu} close={() => setOpen(null)} />
        </>
    );
}
