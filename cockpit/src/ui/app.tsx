/* SPDX-License-Identifier: MIT */
/** The page: its tabs, and what it says if vgpud is away or the user may not change anything. */

import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import {
    EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter,
} from "@patternfly/react-core/dist/esm/components/EmptyState";
import { Page, PageSection } from "@patternfly/react-core/dist/esm/components/Page";
import { Spinner } from "@patternfly/react-core/dist/esm/components/Spinner";
import { Tab, Tabs, TabTitleText } from "@patternfly/react-core/dist/esm/components/Tabs";
import ExclamationCircleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon";
import { useEffect, useState } from "react";

import { host, useHost } from "../agent/host";
import { Events } from "./events";
import { History } from "./history";
import { LiveUse } from "./live-use";
import { Overview } from "./overview";
import { Slices } from "./slices";
import { Tenants } from "./tenants";

const tabs = [
    ["overview", "GPUs"], ["slices", "Slices"], ["use", "Use"], ["history", "History"], ["tenants", "Tenants"],
    ["events", "Events"],
] as const;

/** Where Cockpit says that the page is: "#/slices?gpu=0000:01:00.0". */
function useLocation() {
    const read = () => ({ path: cockpit.location.path, options: cockpit.location.options });
    const [location, setLocation] = useState(read);

    useEffect(() => {
        const moved = () => setLocation(read());

        cockpit.addEventListener("locationchanged", moved);
        return () => cockpit.removeEventListener("locationchanged", moved);
    }, []);
    return location;
}

function Away() {
    return (
        <EmptyState titleText="vgpud is not running" headingLevel="h1" icon={ExclamationCircleIcon} status="danger">
            <EmptyStateBody>
                VMs and containers that have slices go on without it. This page comes back when vgpud does. The journal
                of vgpud.service says why it ended.
            </EmptyStateBody>
            <EmptyStateFooter>
                <EmptyStateActions>
                    <Button variant="primary" onClick={() => host.connect()}>Start vgpud</Button>
                </EmptyStateActions>
            </EmptyStateFooter>
        </EmptyState>
    );
}

function Content({ tab, options }: { tab: string; options: Record<string, string> }) {
    switch (tab) {
    case "slices": return <Slices options={options} />;
    case "use": return <LiveUse />;
    case "history": return <History />;
    case "tenants": return <Tenants />;
    case "events": return <Events />;
    default: return <Overview />;
    }
}

function Hints() {
    const { admin, error } = useHost();

    return (
        <>
            {admin === false &&
                <Alert isInline variant="info" title="Limited access" className="vgpu-limited">
                    You see and change slices of your own tenants only. For more, turn on administrative access in the
                    bar above.
                </Alert>}
            {error && <Alert isInline variant="danger" title={error} />}
        </>
    );
}

export function App() {
    const { link, loaded } = useHost();
    const { path, options } = useLocation();
    const tab = tabs.find(([key]) => key === path[0])?.[0] ?? "overview";

    if (link === "away")
        return <Page className="vgpu-page"><PageSection><Away /></PageSection></Page>;
    if (!loaded)
        return (
            <Page className="vgpu-page">
                <PageSection>
                    <EmptyState titleText="Asking vgpud" headingLevel="h1" icon={Spinner} />
                </PageSection>
            </Page>
        );
    return (
        <Page className="vgpu-page">
            <PageSection type="tabs" hasBodyWrapper={false}>
                <Tabs activeKey={tab} onSelect={(_event, key) => cockpit.location.go([String(key)])} usePageInsets
                      aria-label="GPUs of this host" role="region">
                    {tabs.map(([key, title]) => (
                        <Tab key={key} eventKey={key} title={<TabTitleText>{title}</TabTitleText>}
                             tabContentId="content" />
                    ))}
                </Tabs>
            </PageSection>
            <PageSection hasBodyWrapper={false} isFilled>
                <Hints />
                <div id="content" role="tabpanel" aria-label={tabs.find(([key]) => key === tab)![1]}>
                    <Content tab={tab} options={options} />
                </div>
            </PageSection>
        </Page>
    );
}
