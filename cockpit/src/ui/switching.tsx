/* SPDX-License-Identifier: MIT */
/** How far a switch of a GPU's mode has come, and how it ended. */

import { Alert, AlertActionCloseButton, AlertActionLink } from "@patternfly/react-core/dist/esm/components/Alert";
import { Spinner } from "@patternfly/react-core/dist/esm/components/Spinner";
import { useState } from "react";

import { host, type SwitchProgress } from "../agent/host";
import type { Gpu } from "../agent/model";
import { modeWords } from "../lib/words";
import { Refusal } from "./dialog";

function Steps({ steps }: { steps: readonly string[] }) {
    return <ol className="vgpu-steps" aria-live="polite">{steps.map((step, i) => <li key={i}>{step}</li>)}</ol>;
}

function Running({ gpu, progress }: { gpu: Gpu; progress: SwitchProgress | undefined }) {
    const [error, setError] = useState("");
    const target = modeWords[progress?.target ?? (gpu.switching || gpu.wantedMode)].toLowerCase();

    async function cancel() {
        setError("");
        try {
            await host.calls.drain(gpu.path, false);
        } catch (refusal) {
            setError((refusal as Error).message);
        }
    }

    return (
        <Alert isInline variant="info" title={`Switching to ${target}`}
               customIcon={<Spinner size="md" aria-label="A switch of its mode is running" />}
               actionLinks={gpu.draining && <AlertActionLink onClick={cancel}>Cancel the switch</AlertActionLink>}>
            <Refusal error={error} />
            <Steps steps={progress?.steps ?? []} />
        </Alert>
    );
}

export function Switching({ gpu, progress }: { gpu: Gpu; progress: SwitchProgress | undefined }) {
    if (gpu.switching || (progress && !progress.done))
        return <Running gpu={gpu} progress={progress} />;
    if (!progress)
        return null;
    const mode = modeWords[progress.target].toLowerCase();
    return (
        <Alert isInline variant={progress.error ? "danger" : "success"}
               title={progress.error ?? `The GPU is ${mode} now.`}
               actionClose={<AlertActionCloseButton onClose={() => host.forgetSwitch(gpu.address)} />}>
            <Steps steps={progress.steps} />
        </Alert>
    );
}
