/* SPDX-License-Identifier: MIT */
/** Who has what of a GPU's memory, as a bar: slices by tenant, what is free, what is oversubscribed. */

import type { Gpu, Slice } from "../agent/model";
import { formatBytes } from "../lib/units";
import { tenantColor, tenantLabel } from "../lib/tenants";
import { sliceName, sliceUser } from "../lib/words";

interface BarProps {
    gpu: Gpu;
    /** Of this GPU. */
    slices: readonly Slice[];
    /** Of the host, sorted. */
    tenants: readonly string[];
    /** The user sees slices of the own tenants only. */
    limited: boolean;
}

function tenantSums(slices: readonly Slice[]): Map<string, number> {
    const sums = new Map<string, number>();

    for (const slice of slices)
        sums.set(slice.tenant, (sums.get(slice.tenant) ?? 0) + slice.vram);
    return new Map([...sums].sort(([a], [b]) => a.localeCompare(b)));
}

function segmentTitle(slice: Slice): string {
    const user = sliceUser(slice);

    return `${sliceName(slice)}: ${formatBytes(slice.vram)}, ${tenantLabel(slice.tenant)}${user && `, ${user}`}`;
}

export function GpuBar({ gpu, slices, tenants, limited }: BarProps) {
    const sums = tenantSums(slices);
    const shown = [...sums.values()].reduce((sum, vram) => sum + vram, 0);
    const others = limited ? Math.max(gpu.promisedVram - shown, 0) : 0;
    const promised = shown + others;
    const scale = Math.max(gpu.capacity, gpu.vram, promised, 1);
    const free = Math.max(gpu.capacity - promised, 0);
    const beyond = Math.max(promised - gpu.vram, 0);
    const share = (bytes: number) => `${100 * bytes / scale}%`;
    const words = [...sums].map(([tenant, vram]) => `${tenantLabel(tenant)} ${formatBytes(vram)}`);

    if (others)
        words.push(`others ${formatBytes(others)}`);
    words.push(`free ${formatBytes(free)}`);
    if (beyond)
        words.push(`oversubscribed by ${formatBytes(beyond)}`);
    return (
        <div className="vgpu-share">
            <div className="vgpu-bar" role="img" aria-label={`Memory of ${gpu.address}: ${words.join(", ")}`}>
                {[...slices].sort((a, b) => a.tenant.localeCompare(b.tenant) || b.vram - a.vram).map(slice => (
                    <span key={slice.uuid} className="vgpu-bar-slice" title={segmentTitle(slice)}
                          style={{ width: share(slice.vram), backgroundColor: tenantColor(slice.tenant, tenants) }} />
                ))}
                {others > 0 && <span className="vgpu-bar-slice vgpu-swatch-others" style={{ width: share(others) }} />}
                {scale > gpu.vram &&
                    <span className="vgpu-bar-beyond" title={`Beyond the GPU's memory, ${formatBytes(gpu.vram)}`}
                          style={{ left: share(gpu.vram), width: share(scale - gpu.vram) }} />}
            </div>
            <ul className="vgpu-legend">
                {[...sums].map(([tenant, vram]) => (
                    <li key={tenant}>
                        <span className="vgpu-swatch" style={{ backgroundColor: tenantColor(tenant, tenants) }} />
                        {tenantLabel(tenant)} {formatBytes(vram)}
                    </li>
                ))}
                {others > 0 &&
                    <li><span className="vgpu-swatch vgpu-swatch-others" />others {formatBytes(others)}</li>}
                <li><span className="vgpu-swatch vgpu-swatch-free" />free {formatBytes(free)}</li>
                {scale > gpu.vram && (
                    <li>
                        <span className="vgpu-swatch vgpu-swatch-beyond" />
                        {beyond ? `oversubscribed by ${formatBytes(beyond)}`
                            : `may be oversubscribed by ${formatBytes(gpu.capacity - gpu.vram)}`}
                    </li>
                )}
            </ul>
        </div>
    );
}
