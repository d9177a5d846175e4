/* SPDX-License-Identifier: MIT */
/** Asks before a vGPU or a slice is removed. */

import { Checkbox } from "@patternfly/react-core/dist/esm/components/Checkbox";
import { useState } from "react";

import { host } from "../agent/host";
import type { Slice } from "../agent/model";
import { formatBytes } from "../lib/units";
import { sliceName, sliceUser, tenantNote } from "../lib/words";
import { Dialog } from "./dialog";

export function SliceRemove({ slice, close }: { slice: Slice; close: () => void }) {
    const [force, setForce] = useState(false);
    const user = sliceUser(slice);

    async function remove() {
        await host.calls.removeSlice(slice.uuid, force ? { Force: true } : {});
        host.refresh();
    }

    return (
        <Dialog title={`Remove ${sliceName(slice)}?`} action="Remove" danger perform={remove} close={close}>
            <p>
                {slice.door === "vm" ? "The vGPU ends and its definition is forgotten. "
                    : "The slice ends, and containers cannot ask for it any more. "}
                GPU {slice.gpu} gets {formatBytes(slice.vram)} of memory back{tenantNote(slice)}.
            </p>
            {user && <p>Now it is used by {user}.</p>}
            {slice.container &&
                <Checkbox id="force" label="Remove it although a container uses it" isChecked={force}
                          onChange={(_event, on) => setForce(on)}
                          description="What runs in the container goes on with the memory that it has." />}
        </Dialog>
    );
}
