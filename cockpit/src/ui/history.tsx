/* SPDX-License-Identifier: MIT */
/** What tenants had and used in the last months, as vgpud has counted it. */

import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core/dist/esm/components/Card";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { Spinner } from "@patternfly/react-core/dist/esm/components/Spinner";
import { useEffect, useState } from "react";

import { host, useHost } from "../agent/host";
import type { ReportRow, Slice } from "../agent/model";
import { formatBytes, percent } from "../lib/units";
import { tenantColor, tenantLabel } from "../lib/tenants";
import { sliceName, typeName } from "../lib/words";
import { Refusal } from "./dialog";
import { type Bar, BarPlot, Legend } from "./plot";
import { type Column, Table } from "./table";

const MONTHS = 6;

interface Month {
    /** "2026-11", in UTC as vgpud counts. */
    name: string;
    rows: ReportRow[];
}

const measures = {
    vramHours: { label: "Promised memory, GiB hours", read: (row: ReportRow) => row.vramHours },
    computeHours: { label: "Promised compute, GPU hours", read: (row: ReportRow) => row.computeHours },
    gpuHours: { label: "Used GPU time, hours", read: (row: ReportRow) => row.gpuSeconds / 3600 },
    busyHours: { label: "Busy, slice hours", read: (row: ReportRow) => row.busyHours },
};

type Measure = keyof typeof measures;

/** The newest last. */
function lastMonths(): string[] {
    const now = new Date();

    return Array.from({ length: MONTHS }, (_, i) =>
        new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - MONTHS + 1 + i, 1)).toISOString().slice(0, 7));
}

function hours(value: number): string {
    return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

/** Of a slice that there is still, with the name that the other tabs show. */
const columns = (slices: readonly Slice[]): Column<ReportRow>[] => [
    { title: "Tenant", cell: row => tenantLabel(row.tenant) },
    {
        title: "Slice",
        cell: row => {
            const slice = slices.find(({ uuid }) => uuid === row.uuid);

            return <>{slice && <b>{sliceName(slice)}</b>}<div className="vgpu-uuid">{row.uuid}</div></>;
        },
    },
    { title: "Type", cell: row => typeName(row.type) },
    { title: "Hours", cell: row => hours(row.hours) },
    { title: "Busy", cell: row => row.hours ? percent(100 * row.busyHours / row.hours) : "" },
    { title: "GPU time", cell: row => row.gpuSeconds ? `${hours(row.gpuSeconds / 3600)}\u00a0h` : "not known" },
    { title: "Peak memory", cell: row => row.peakVram ? `${formatBytes(row.peakVram)} of ${formatBytes(row.vram)}`
        : "not known" },
    { title: "Advice", cell: row => row.advice },
];

/** What vgpud sums up by. */
function reportKey(row: ReportRow): string {
    return `${row.uuid} ${row.tenant} ${row.gpu} ${row.type}`;
}

function barsOf(months: readonly Month[], read: (row: ReportRow) => number, tenants: readonly string[]): Bar[] {
    return months.map(({ name, rows }) => ({
        name,
        parts: [...new Set(rows.map(row => row.tenant))].sort().map(tenant => ({
            name: tenantLabel(tenant),
            color: tenantColor(tenant, tenants),
            value: rows.filter(row => row.tenant === tenant).reduce((sum, row) => sum + read(row), 0),
        })),
    }));
}

function legendOf(months: readonly Month[], tenants: readonly string[]) {
    const all = new Set(months.flatMap(({ rows }) => rows.map(row => row.tenant)));

    return [...all].sort().map(tenant => ({ name: tenantLabel(tenant), color: tenantColor(tenant, tenants) }));
}

export function History() {
    const { slices, tenants: all } = useHost();
    const tenants = all.map(({ name }) => name);
    const [months, setMonths] = useState<Month[] | null>(null);
    const [error, setError] = useState("");
    const [measure, setMeasure] = useState<Measure>("vramHours");
    const [chosen, setChosen] = useState(lastMonths()[MONTHS - 1]);

    useEffect(() => {
        Promise.all(lastMonths().map(async name => ({ name, rows: await host.calls.report(name) })))
                .then(setMonths, refusal => setError((refusal as Error).message));
    }, []);
    return (
        <Card component="section">
            <CardHeader>
                <CardTitle component="h2">The last {MONTHS} months</CardTitle>
                <FormSelect aria-label="What is shown" value={measure} className="vgpu-measure"
                            onChange={(_event, key) => setMeasure(key as Measure)}>
                    {Object.entries(measures).map(([key, { label }]) => (
                        <FormSelectOption key={key} value={key} label={label} />
                    ))}
                </FormSelect>
            </CardHeader>
            <CardBody>
                <Refusal error={error} />
                {!months && !error && <Spinner aria-label="Reading reports" />}
                {months && (
                    <>
                        <BarPlot label={measures[measure].label} words={hours} chosen={chosen} choose={setChosen}
                                 bars={barsOf(months, measures[measure].read, tenants)} />
                        <Legend entries={legendOf(months, tenants)} />
                        <h3 className="vgpu-month">{chosen}</h3>
                        <Table label={`Report of ${chosen}`} columns={columns(slices)} rowKey={reportKey}
                               rows={months.find(({ name }) => name === chosen)?.rows ?? []}
                               empty={<p>Nothing is known of that month.</p>} />
                    </>
                )}
            </CardBody>
        </Card>
    );
}
