/* SPDX-License-Identifier: MIT */
/** One GPU: what it is used for, how it is, and who has what of it. */

import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core/dist/esm/components/Card";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";
import { useState } from "react";

import { host, useHost } from "../agent/host";
import type { Gpu, ScheduleEntry } from "../agent/model";
import { formatBytes, percent } from "../lib/units";
import { count, gpuName, modeHelp, modeWords } from "../lib/words";
import { type Action, ActionMenu } from "./action-menu";
import { Refusal } from "./dialog";
import { GpuBar } from "./gpu-bar";
import { Health } from "./health";
import { ModeDialog } from "./mode-dialog";
import { Switching } from "./switching";
import { UsersDialog } from "./users-dialog";

function Labels({ gpu }: { gpu: Gpu }) {
    return (
        <span className="vgpu-labels">
            <Label isCompact color={gpu.mode === "shared" ? "blue" : "grey"}>{modeWords[gpu.mode]}</Label>
            {gpu.draining && <Label isCompact status="warning">Draining</Label>}
            {gpu.healthy ? <Label isCompact status="success">Healthy</Label>
                : <Label isCompact status="danger">Not healthy</Label>}
        </span>
    );
}

function Next({ entries }: { entries: readonly ScheduleEntry[] }) {
    const coming = entries.find(entry => entry.next);
    if (!coming)
        return null;
    const { mode, next, name } = coming;
    const when = new Date(next * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    return <p className="vgpu-facts">Next by schedule: {modeWords[mode].toLowerCase()} on {when} ({name})</p>;
}

function Facts({ gpu, slices, limited }: { gpu: Gpu; slices: number; limited: boolean }) {
    const link = (
        <Button variant="link" isInline onClick={() => cockpit.location.go(["slices"], { gpu: gpu.address })}>
            {limited ? count(slices, "slice of yours", "slices of yours") : count(slices, "slice")}
        </Button>
    );

    if (gpu.mode !== "shared")
        return <p className="vgpu-facts">{formatBytes(gpu.vram)} of memory. {modeHelp[gpu.mode]}</p>;
    return (
        <p className="vgpu-facts">
            {link}, {formatBytes(gpu.promisedVram)} of {formatBytes(gpu.capacity)} of memory
            and {percent(gpu.promisedCompute)} of compute promised
        </p>
    );
}

export function GpuCard({ gpu }: { gpu: Gpu }) {
    const { admin, slices, tenants, switches, schedule } = useHost();
    const [dialog, setDialog] = useState<"mode" | "users" | null>(null);
    const [error, setError] = useState("");
    const mine = slices.filter(slice => slice.gpu === gpu.address);
    const actions: Action[] = [
        { label: "Switch mode…", run: () => setDialog("mode") },
        { label: "Who uses it…", run: () => setDialog("users") },
    ];

    async function drain(on: boolean) {
        setError("");
        try {
            await host.calls.drain(gpu.path, on);
        } catch (refusal) {
            setError((refusal as Error).message);
        }
    }

    if (gpu.mode === "shared")
        actions.push(gpu.draining ? { label: "End draining", run: () => drain(false) }
            : { label: "Drain", run: () => drain(true) });
    return (
        <Card component="section" className="vgpu-gpu" data-gpu={gpu.address}>
            <CardHeader actions={{ actions: <ActionMenu label={`Actions for ${gpu.address}`} actions={actions} /> }}>
                <CardTitle component="h2">{gpuName(gpu)}</CardTitle>
                <span className="vgpu-address">{gpu.address}</span>
                <Labels gpu={gpu} />
            </CardHeader>
            <CardBody>
                <Refusal error={error} />
                <Switching gpu={gpu} progress={switches[gpu.address]} />
                <Health gpu={gpu} />
                {gpu.mode === "shared" &&
                    <GpuBar gpu={gpu} slices={mine} tenants={tenants.map(tenant => tenant.name)}
                            limited={admin === false} />}
                <Facts gpu={gpu} slices={mine.length} limited={admin === false} />
                <Next entries={schedule.filter(entry => entry.gpu === gpu.address)} />
            </CardBody>
            {dialog === "mode" && <ModeDialog gpu={gpu} close={() => setDialog(null)} />}
            {dialog === "users" && <UsersDialog gpu={gpu} close={() => setDialog(null)} />}
        </Card>
    );
}
