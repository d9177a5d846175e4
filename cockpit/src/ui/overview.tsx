/* SPDX-License-Identifier: MIT */
/** All GPUs of the host. */

import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";

import { useHost } from "../agent/host";
import { GpuCard } from "./gpu-card";

export function Overview() {
    const { gpus } = useHost();

    if (!gpus.length)
        return (
            <EmptyState titleText="This host has no GPU" headingLevel="h2">
                <EmptyStateBody>A GPU that is put in appears here when its PCI device is found.</EmptyStateBody>
            </EmptyState>
        );
    return <div className="vgpu-gpus">{gpus.map(gpu => <GpuCard key={gpu.address} gpu={gpu} />)}</div>;
}
