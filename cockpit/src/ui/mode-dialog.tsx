/* SPDX-License-Identifier: MIT */
/** Switches a whole GPU to another mode. It says first who is in the way and what would be done. */

import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/esm/components/Checkbox";
import { FormGroup } from "@patternfly/react-core/dist/esm/components/Form";
import { Radio } from "@patternfly/react-core/dist/esm/components/Radio";
import { useState } from "react";

import { host } from "../agent/host";
import type { Gpu, Mode } from "../agent/model";
import { modeHelp, modeWords } from "../lib/words";
import { Dialog, Refusal } from "./dialog";
import { isNumber, NumberField, numberOf } from "./fields";

/** What a dry run said: the steps, or why not. */
interface Preview {
    steps: string[];
    error: string;
}

function PreviewBox({ preview }: { preview: Preview | null }) {
    if (!preview)
        return null;
    if (preview.error)
        return <Refusal error={preview.error} />;
    return (
        <Alert isInline variant="info" title={preview.steps.length ? "This would be done:" : "Nothing would be done."}>
            <ol className="vgpu-steps">{preview.steps.map((step, i) => <li key={i}>{step}</li>)}</ol>
        </Alert>
    );
}

function ModeChoice({ gpu, mode, choose }: { gpu: Gpu; mode: Mode; choose: (mode: Mode) => void }) {
    const modes = (Object.keys(modeWords) as Mode[]).filter(name =>
        name !== gpu.mode && (name !== "partitioned" || gpu.sriovTotal > 0 || gpu.driver === "nvidia"));

    return (
        <FormGroup role="radiogroup" label="New mode" fieldId="mode" isStack>
            {modes.map(name => (
                <Radio key={name} id={`mode-${name}`} name="mode" label={modeWords[name]} description={modeHelp[name]}
                       isChecked={mode === name} onChange={() => choose(name)} />
            ))}
        </FormGroup>
    );
}

export function ModeDialog({ gpu, close }: { gpu: Gpu; close: () => void }) {
    const [mode, setMode] = useState<Mode>(gpu.mode === "shared" ? "passthrough" : "shared");
    const [drain, setDrain] = useState(false);
    const [timeout, setTimeout] = useState("");
    const [partitions, setPartitions] = useState("");
    const [preview, setPreview] = useState<Preview | null>(null);
    const options = {
        ...(drain ? { Drain: true, Timeout: 60 * (numberOf(timeout) ?? 0) } : {}),
        ...(mode === "partitioned" && partitions ? { Partitions: Number(partitions) } : {}),
    };

    async function look() {
        try {
            const steps = await host.calls.setMode(gpu.path, mode, { ...options, DryRun: true });

            setPreview({ steps, error: "" });
        } catch (refusal) {
            setPreview({ steps: [], error: (refusal as Error).message });
        }
    }

    /** The card shows how it goes on: this may take as long as the GPU's users want. */
    async function start() {
        host.setMode(gpu, mode, options);
    }

    return (
        <Dialog title={`Switch ${gpu.address}`} action="Switch" perform={start} close={close}
                ready={isNumber(timeout) && isNumber(partitions)}
                buttons={<Button variant="secondary" onClick={look}>Show what would be done</Button>}>
            <ModeChoice gpu={gpu} mode={mode} choose={name => { setMode(name); setPreview(null) }} />
            {mode === "partitioned" &&
                <NumberField id="partitions" label="Partitions" value={partitions} onChange={setPartitions}
                             help="Empty: as many as the GPU can have." />}
            <Checkbox id="drain" label="Wait until nobody uses the GPU" isChecked={drain}
                      onChange={(_event, on) => setDrain(on)}
                      description="Until then nobody new can use it. Without this, a GPU in use is not switched." />
            {drain && <NumberField id="timeout" label="Wait at most, in minutes" value={timeout} onChange={setTimeout}
                                   help="Empty: for ever." />}
            <PreviewBox preview={preview} />
        </Dialog>
    );
}
