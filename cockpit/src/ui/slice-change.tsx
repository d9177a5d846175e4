/* SPDX-License-Identifier: MIT */
/** Changes a vGPU or a slice, running or not. Only fields that differ are sent. */

import { useState } from "react";

import type { Request } from "../agent/calls";
import { host, useHost } from "../agent/host";
import type { Slice } from "../agent/model";
import { sizeInput } from "../lib/units";
import { sliceName } from "../lib/words";
import { Dialog } from "./dialog";
import { isNumber, isSize, NumberField, SelectField, SizeField, sizeOf } from "./fields";

const classes = [
    ["guaranteed", "Guaranteed"], ["burstable", "Burstable"], ["best-effort", "Best effort"],
] as const;

function valuesOf(slice: Slice) {
    return {
        vram: sizeInput(slice.vram),
        weight: String(slice.weight),
        cap: String(slice.cap),
        priority: String(slice.priority),
        compute: String(slice.compute),
        oversubscribe: sizeInput(slice.oversubscribe),
        class: slice.class,
        tenant: slice.tenant,
    };
}

type Values = ReturnType<typeof valuesOf>;

function changesOf(before: Values, now: Values): Request {
    const changed = (key: keyof Values) => now[key] !== before[key];

    return {
        Vram: changed("vram") ? sizeOf(now.vram) : undefined,
        Weight: changed("weight") ? Number(now.weight) : undefined,
        Cap: changed("cap") ? Number(now.cap) : undefined,
        Priority: changed("priority") ? Number(now.priority) : undefined,
        Compute: changed("compute") ? Number(now.compute) : undefined,
        Oversubscribe: changed("oversubscribe") ? sizeOf(now.oversubscribe) : undefined,
        Class: changed("class") ? now.class : undefined,
        Tenant: changed("tenant") ? now.tenant : undefined,
    };
}

export function SliceChange({ slice, close }: { slice: Slice; close: () => void }) {
    const { tenants } = useHost();
    const [before] = useState(valuesOf(slice));
    const [values, setValues] = useState(before);
    const set = (key: keyof Values) => (value: string) => setValues({ ...values, [key]: value });
    const changes = changesOf(before, values);
    const filled = [values.vram, values.weight, values.cap, values.priority, values.compute, values.oversubscribe];

    async function change() {
        await host.calls.changeSlice(slice.uuid, changes);
        host.refresh();
    }

    return (
        <Dialog title={`Change ${sliceName(slice)}`} action="Change" perform={change} close={close}
                ready={filled.every(text => text) && [values.vram, values.oversubscribe].every(isSize) &&
                    [values.weight, values.cap, values.priority, values.compute].every(isNumber) &&
                    Object.values(changes).some(value => value !== undefined)}>
            <SizeField id="vram" label="GPU memory" value={values.vram} onChange={set("vram")} />
            <NumberField id="weight" label="Weight" value={values.weight} onChange={set("weight")}
                         help="Slices that want the GPU at once share its time by weight." />
            <NumberField id="cap" label="Cap, in per cent of the GPU" value={values.cap} onChange={set("cap")} />
            <NumberField id="priority" label="Priority" value={values.priority} onChange={set("priority")}
                         help="Work of a higher priority goes first." />
            <NumberField id="compute" label="Promised compute, in per cent of the GPU" value={values.compute}
                         onChange={set("compute")} />
            <SizeField id="oversubscribe" label="Host memory beyond its GPU memory" value={values.oversubscribe}
                       onChange={set("oversubscribe")} />
            <SelectField id="class" label="Class" value={values.class} onChange={set("class")} options={classes} />
            <SelectField id="tenant" label="Tenant" value={values.tenant} onChange={set("tenant")}
                         options={[["", "None"], ...tenants.map(({ name }) => [name, name] as [string, string])]} />
        </Dialog>
    );
}
