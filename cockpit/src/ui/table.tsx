/* SPDX-License-Identifier: MIT */
/** A table that becomes a list of cards on a narrow screen. */

import "@patternfly/react-styles/css/components/Table/table.css";
import "@patternfly/react-styles/css/components/Table/table-grid.css";
import type { ReactNode } from "react";

export interface Column<Row> {
    title: string;
    cell: (row: Row) => ReactNode;
    /** Holds buttons: it has no title on screen. */
    actions?: boolean;
}

export interface TableProps<Row> {
    label: string;
    columns: Column<Row>[];
    rows: readonly Row[];
    rowKey: (row: Row) => string;
    /** Shown instead of an empty table. */
    empty: ReactNode;
}

export function Table<Row>({ label, columns, rows, rowKey, empty }: TableProps<Row>) {
    if (!rows.length)
        return <>{empty}</>;
    return (
        <table className="pf-v6-c-table pf-m-grid-lg pf-m-compact" aria-label={label}>
            <thead className="pf-v6-c-table__thead">
                <tr className="pf-v6-c-table__tr">
                    {columns.map(({ title, actions }) => (
                        <th key={title} className="pf-v6-c-table__th pf-m-wrap" scope="col">
                            {actions ? <span className="pf-v6-screen-reader">{title}</span> : title}
                        </th>
                    ))}
                </tr>
            </thead>
            <tbody className="pf-v6-c-table__tbody">
                {rows.map(row => (
                    <tr key={rowKey(row)} className="pf-v6-c-table__tr" data-row={rowKey(row)}>
                        {columns.map(({ title, cell, actions }) => (
                            <td key={title} className={`pf-v6-c-table__td${actions ? " pf-v6-c-table__action" : ""}`}
                                data-label={actions ? undefined : title}>
                                {actions ? cell(row) : <div>{cell(row)}</div>}
                            </td>
                        ))}
                    </tr>
                ))}
            </tbody>
        </table>
    );
}
