/* SPDX-License-Identifier: MIT */
/** The menu behind three dots, for what can be done with one thing. */

import { Dropdown, DropdownItem, DropdownList } from "@patternfly/react-core/dist/esm/components/Dropdown";
import { MenuToggle } from "@patternfly/react-core/dist/esm/components/MenuToggle";
import EllipsisVIcon from "@patternfly/react-icons/dist/esm/icons/ellipsis-v-icon";
import { useState } from "react";

export interface Action {
    label: string;
    run: () => void;
    danger?: boolean;
}

export function ActionMenu({ label, actions }: { label: string; actions: Action[] }) {
    const [open, setOpen] = useState(false);

    return (
        <Dropdown isOpen={open} onOpenChange={setOpen} popperProps={{ position: "right" }}
                  onSelect={() => setOpen(false)} shouldFocusFirstItemOnOpen shouldFocusToggleOnSelect
                  toggle={ref => (
                      <MenuToggle ref={ref} variant="plain" aria-label={label} isExpanded={open}
                                  onClick={() => setOpen(!open)} icon={<EllipsisVIcon />} />
                  )}>
            <DropdownList>
                {actions.map(({ label: text, run, danger }) => (
                    <DropdownItem key={text} onClick={run} isDanger={danger ?? false}>{text}</DropdownItem>
                ))}
            </DropdownList>
        </Dropdown>
    );
}
