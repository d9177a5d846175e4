/* SPDX-License-Identifier: MIT */
/** What each GPU's slices use now and used in the last minutes, while this page was open. */

import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core/dist/esm/components/Card";
import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";

import { host, useHost } from "../agent/host";
import type { Gpu, Slice } from "../agent/model";
import type { Sample } from "../agent/samples";
import { formatBytes, percent } from "../lib/units";
import { tenantColor, tenantLabel } from "../lib/tenants";
import { gpuName, sliceName, sliceUser } from "../lib/words";
import { Legend, LinePlot, type Series } from "./plot";
import { type Column, Table } from "./table";

const LEAST_SPAN_MS = 2 * 60 * 1000;
const MOST_SPAN_MS = 10 * 60 * 1000;

/** Slices of a tenant as one line: the sum of those that are known at that moment. */
function tenantSeries(slices: readonly Slice[], tenants: readonly string[], read: (sample: Sample) => number | null) {
    const series: Series[] = [];

    for (const tenant of new Set(slices.map(slice => slice.tenant))) {
        const sums = new Map<number, number>();

        for (const slice of slices.filter(one => one.tenant === tenant)) {
            for (const sample of host.samples.of(slice.uuid)) {
                const value = read(sample);

                if (value !== null)
                    sums.set(sample.at, (sums.get(sample.at) ?? 0) + value);
            }
        }
        series.push({
            name: tenantLabel(tenant),
            color: tenantColor(tenant, tenants),
            points: [...sums].sort(([a], [b]) => a - b).map(([at, value]) => ({ at, value })),
        });
    }
    return series;
}

function nowOf(series: readonly Series[]): number | null {
    const values = series.flatMap(({ points }) => points.at(-1)?.value ?? []);

    return values.length ? values.reduce((sum, value) => sum + value, 0) : null;
}

const ofWhole = (share: number) => percent(100 * share);

function known<Value>(value: Value | null | undefined, words: (value: Value) => string): string {
    return value === null || value === undefined ? "not known" : words(value);
}

const columns: Column<Slice>[] = [
    { title: "Slice", cell: slice => <>{sliceName(slice)}<div className="vgpu-note">{sliceUser(slice)}</div></> },
    { title: "Tenant", cell: slice => tenantLabel(slice.tenant) },
    { title: "GPU time", cell: slice => known(host.samples.of(slice.uuid).at(-1)?.gpu, ofWhole) },
    {
        title: "Waiting for others",
        cell: slice => known(host.samples.of(slice.uuid).at(-1)?.waited, value => `${value.toFixed(2)} s/s`),
    },
    {
        title: "Memory",
        cell: slice => `${known(slice.vramUsed, formatBytes)} of ${formatBytes(slice.vram)}`,
    },
    { title: "In host memory", cell: slice => known(slice.spilled, formatBytes) },
];

function GpuUse({ gpu, slices, tenants }: { gpu: Gpu; slices: readonly Slice[]; tenants: readonly string[] }) {
    const time = tenantSeries(slices, tenants, sample => sample.gpu);
    const memory = tenantSeries(slices, tenants, sample => sample.vramUsed);
    /* Looks are not exactly as far apart as the page thinks, so the sum may be a little more than the whole. */
    const timeWords = `GPU time: ${known(nowOf(time), share => ofWhole(Math.min(share, 1)))}`;
    const memoryWords = `Memory in use: ${known(nowOf(memory), bytes =>
        `${formatBytes(bytes)} of ${formatBytes(gpu.vram)}`)}`;
    const end = Date.now();
    const begin = Math.min(end, ...slices.map(({ uuid }) => host.samples.of(uuid)[0]?.at ?? end));
    const span = Math.min(Math.max(end - begin, LEAST_SPAN_MS), MOST_SPAN_MS);

    return (
        <Card component="section" data-gpu={gpu.address}>
            <CardHeader>
                <CardTitle component="h2">{gpuName(gpu)}</CardTitle>
                <span className="vgpu-address">{gpu.address}</span>
            </CardHeader>
            <CardBody>
                <div className="vgpu-plots">
                    <figure>
                        <figcaption>{timeWords}</figcaption>
                        <LinePlot label={timeWords} series={time} top={1} words={ofWhole} span={span} end={end} />
                    </figure>
                    <figure>
                        <figcaption>{memoryWords}</figcaption>
                        <LinePlot label={memoryWords} series={memory} top={gpu.vram} words={formatBytes} span={span}
                                  end={end} />
                    </figure>
                </div>
                <Legend entries={time} />
                <Table label={`Use of ${gpu.address}`} columns={columns} rows={slices} rowKey={({ uuid }) => uuid}
                       empty={null} />
                <p className="vgpu-note vgpu-remark">
                    The GPU time of a slice that is alone on its GPU and has no cap is not measured, and stays at 0.
                </p>
            </CardBody>
        </Card>
    );
}

export function LiveUse() {
    const { gpus, slices, tenants } = useHost();
    const used = gpus.filter(gpu => slices.some(slice => slice.gpu === gpu.address));

    if (!used.length)
        return (
            <EmptyState titleText="Nothing to show" headingLevel="h2" variant="sm">
                <EmptyStateBody>No GPU has a slice. Use is shown as soon as there is one.</EmptyStateBody>
            </EmptyState>
        );
    return (
        <div className="vgpu-stack">
            {used.map(gpu => (
                <GpuUse key={gpu.address} gpu={gpu} slices={slices.filter(slice => slice.gpu === gpu.address)}
                        tenants={tenants.map(({ name }) => name)} />
            ))}
        </div>
    );
}
