/* SPDX-License-Identifier: MIT */
/** What is wrong with a GPU, and what to do about it. */

import { Alert, AlertActionLink } from "@patternfly/react-core/dist/esm/components/Alert";
import { useState } from "react";

import { host } from "../agent/host";
import type { Gpu } from "../agent/model";
import { Refusal } from "./dialog";

/** Words of vgpud's findings (vgpud(8)), and the advice that goes with them. The first that fits counts. */
const advice: [RegExp, string][] = [
    [/fatal errors on its PCI Express link/, "Read the kernel's log, then reset or replace the card. Clear the finding " +
        "when it works again."],
    [/PCI Express link/, "Shut the host down, and seat the card again or move it to another slot. The finding goes " +
        "away by itself when the link is good."],
    [/degrees Celsius/, "Look at the GPU's fans and at the air of the rack. The finding goes away when it has cooled."],
    [/errors in its memory/, "Stop its users and reset the GPU. If errors come back, replace the card."],
    [/dies repeatedly|gave up/, "Read the engine's journal, mend the cause, and clear the finding."],
    [/it is missing/, "Look for the card in lspci and in the kernel's log."],
];

function adviceFor(reason: string): string {
    return advice.find(([pattern]) => pattern.test(reason))?.[1] ?? "Mend the cause, then clear the finding.";
}

export function Health({ gpu }: { gpu: Gpu }) {
    const [error, setError] = useState("");

    async function clear() {
        setError("");
        try {
            await host.calls.clearHealth(gpu.path);
        } catch (refusal) {
            setError((refusal as Error).message);
        }
    }

    if (gpu.healthy)
        return null;
    return (
        <Alert isInline variant="danger" className="vgpu-health"
               title="This GPU is not healthy. Nothing new is put on it; what runs goes on."
               actionLinks={<AlertActionLink onClick={clear}>Clear the finding</AlertActionLink>}>
            <Refusal error={error} />
            <dl>
                {gpu.healthReasons.map(reason => [
                    <dt key={reason}>{reason}</dt>,
                    <dd key={`${reason} advice`}>{adviceFor(reason)}</dd>,
                ])}
            </dl>
        </Alert>
    );
}
