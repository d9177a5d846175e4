/* SPDX-License-Identifier: MIT */
/** Makes vGPUs for VMs, or a slice for a container. */

import { Checkbox } from "@patternfly/react-core/dist/esm/components/Checkbox";
import { ExpandableSection } from "@patternfly/react-core/dist/esm/components/ExpandableSection";
import { useState } from "react";

import type { Request } from "../agent/calls";
import { host, useHost } from "../agent/host";
import type { Gpu, SliceType, Tenant } from "../agent/model";
import { gpuName, typeName } from "../lib/words";
import { Dialog } from "./dialog";
import { isNumber, isSize, NumberField, numberOf, SelectField, SizeField, sizeOf, TextField } from "./fields";

const doors = [
    ["vm", "vGPU for a VM"],
    ["auto", "Container slice: native with CUDA on NVIDIA's GPUs, guarded on others"],
    ["guarded", "Container slice, guarded: limits hold against anything in the container"],
    ["native", "Container slice, native: the GPU's own node, for programs that are trusted"],
    ["vfio", "Container slice, vfio: for runtimes that start VMs"],
] as const;

const classes = [
    ["", "The type's"],
    ["guaranteed", "Guaranteed: never promised twice"],
    ["burstable", "Burstable: memory may be overcommitted"],
    ["best-effort", "Best effort: stopped first when memory is short"],
] as const;

const empty = {
    door: "vm", type: "", name: "", tenant: "", gpu: "", count: "1", vram: "", class: "", weight: "", cap: "",
    compute: "", oversubscribe: "",
};

type Values = typeof empty;

function requestOf(values: Values, keep: boolean): Request {
    const request: Request = {
        Door: values.door,
        Type: values.type || undefined,
        Tenant: values.tenant || undefined,
        Gpus: values.gpu ? [values.gpu] : undefined,
        Vram: sizeOf(values.vram),
        Class: values.class || undefined,
        Weight: numberOf(values.weight),
        Cap: numberOf(values.cap),
        Compute: numberOf(values.compute),
        Oversubscribe: sizeOf(values.oversubscribe),
    };

    if (values.door === "vm") {
        const count = numberOf(values.count);

        /* A name is of one. */
        return {
            ...request, Count: count, Name: count === 1 && values.name || undefined, Define: keep, Autostart: keep,
        };
    }
    return { ...request, Name: values.name || undefined, Ephemeral: !keep };
}

function typeOptions(types: readonly SliceType[], gpu: string) {
    const names = new Map<string, string>();

    for (const type of types)
        if (!gpu || type.gpu === gpu)
            names.set(type.id, type.description);
    return [...names].map(([id, text]) => [id, text ? `${typeName(id)}: ${text}` : typeName(id)] as const);
}

function More({ values, set }: { values: Values; set: (key: keyof Values) => (value: string) => void }) {
    const [open, setOpen] = useState(false);

    return (
        <ExpandableSection toggleText="Limits and shares" isExpanded={open} onToggle={(_event, on) => setOpen(on)}
                           className="pf-v6-c-form" contentId="more" toggleId="more-toggle">
            <SelectField id="class" label="Class" value={values.class} onChange={set("class")} options={classes} />
            <NumberField id="weight" label="Weight" value={values.weight} onChange={set("weight")}
                         help="1 to 10000. Slices that want the GPU at once share its time by weight." />
            <NumberField id="cap" label="Cap, in per cent of the GPU" value={values.cap} onChange={set("cap")}
                         help="It never gets more of the GPU's time than this." />
            <NumberField id="compute" label="Promised compute, in per cent of the GPU" value={values.compute}
                         onChange={set("compute")} help="Empty: its share of the GPU's memory." />
            <SizeField id="oversubscribe" label="Host memory beyond its GPU memory" value={values.oversubscribe}
                       onChange={set("oversubscribe")} help="Empty: none." />
        </ExpandableSection>
    );
}

function Place({ values, set, gpus, tenants }: {
    values: Values; set: (key: keyof Values) => (value: string) => void; gpus: readonly Gpu[];
    tenants: readonly Tenant[];
}) {
    const gpuOptions = [["", "Any with room"], ...gpus.filter(gpu => gpu.mode === "shared")
            .map(gpu => [gpu.address, `${gpu.address} ${gpuName(gpu)}`])] as [string, string][];
    const tenantOptions = [["", "None"], ...tenants.map(({ name }) => [name, name])] as [string, string][];

    return (
        <>
            <SelectField id="gpu" label="GPU" value={values.gpu} onChange={set("gpu")} options={gpuOptions} />
            {tenants.length ? <SelectField id="tenant" label="Tenant" value={values.tenant} onChange={set("tenant")}
                                           options={tenantOptions} />
                : <TextField id="tenant" label="Tenant" value={values.tenant} onChange={set("tenant")}
                             help="Empty: none." />}
        </>
    );
}

export function SliceCreate({ close, gpu }: { close: () => void; gpu: string }) {
    const { gpus, types, tenants } = useHost();
    const offered = typeOptions(types, gpu);
    const [values, setValues] = useState<Values>({ ...empty, gpu, type: offered[0]?.[0] ?? "" });
    const [keep, setKeep] = useState(true);
    const set = (key: keyof Values) => (value: string) => setValues({ ...values, [key]: value });
    const vgpu = values.door === "vm";
    const sizes = [values.vram, values.oversubscribe];
    const numbers = [values.count, values.weight, values.cap, values.compute];

    async function create() {
        await host.calls.createSlice(requestOf(values, keep));
        host.refresh();
    }

    return (
        <Dialog title="Make a slice" action="Make" perform={create} close={close}
                ready={sizes.every(isSize) && numbers.every(isNumber) && !!(values.type || (!vgpu && values.vram))}>
            <SelectField id="door" label="For" value={values.door} onChange={set("door")} options={doors} />
            {offered.length ? <SelectField id="type" label="Type" value={values.type} onChange={set("type")}
                                           options={vgpu ? offered : [...offered, ["", "A size of its own"]]} />
                : <TextField id="type" label="Type" value={values.type} onChange={set("type")}
                             help="Such as half. An administrator can say which there are." />}
            <SizeField id="vram" label="GPU memory" value={values.vram} onChange={set("vram")}
                       required={!vgpu && !values.type}
                       help={values.type ? "Empty: the type's." : "Such as 2G."} />
            {vgpu && <NumberField id="count" label="How many" value={values.count} onChange={set("count")} />}
            {(!vgpu || values.count.trim() === "1") &&
                <TextField id="name" label="Name" value={values.name} onChange={set("name")}
                           help={vgpu ? "vgpuctl takes it in place of the UUID. It may be empty."
                               : "Containers ask for it by this name. Empty: by its UUID."} />}
            <Place values={values} set={set} gpus={gpus} tenants={tenants} />
            <Checkbox id="keep" isChecked={keep} onChange={(_event, on) => setKeep(on)}
                      label={vgpu ? "Keep it, and start it at every boot"
                          : "Keep it after its container has ended"} />
            <More values={values} set={set} />
        </Dialog>
    );
}
