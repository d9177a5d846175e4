/* SPDX-License-Identifier: MIT */
/** What has happened since this page was opened. */

import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";

import { useHost } from "../agent/host";
import type { HostEvent } from "../agent/model";
import { type Column, Table } from "./table";

const columns: Column<HostEvent>[] = [
    { title: "Time", cell: event => <span className="vgpu-time">{event.at.toLocaleTimeString()}</span> },
    { title: "Kind", cell: event => <Label isCompact>{event.kind}</Label> },
    { title: "What happened", cell: event => event.text },
];

export function Events() {
    const { events } = useHost();

    return (
        <Table label="Events" rows={events} columns={columns}
               rowKey={event => `${event.at.getTime()} ${event.kind} ${event.vgpu} ${event.text}`}
               empty={
                   <EmptyState titleText="Nothing has happened yet" headingLevel="h2" variant="sm">
                       <EmptyStateBody>
                           Events appear here from the moment that this page is opened. Older ones are in the journal
                           of vgpud.service.
                       </EmptyStateBody>
                   </EmptyState>
               } />
    );
}
