/* SPDX-License-Identifier: MIT */
/** A dialog with one action. If vgpud refuses, its sentence is shown as it is, and the dialog stays open. */

import { Alert } from "@patternfly/react-core/dist/esm/components/Alert";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Form } from "@patternfly/react-core/dist/esm/components/Form";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/esm/components/Modal";
import { type FormEvent, type ReactNode, useState } from "react";

export interface DialogProps {
    title: string;
    action: string;
    danger?: boolean;
    /** The fields are such that the action can be tried. */
    ready?: boolean;
    perform: () => Promise<unknown>;
    close: () => void;
    children?: ReactNode;
    /** More buttons, before Cancel. */
    buttons?: ReactNode;
}

/** What vgpud said no with. */
export function Refusal({ error }: { error: string }) {
    return error ? <Alert isInline variant="danger" title={error} className="vgpu-refusal" role="alert" /> : null;
}

export function Dialog({ title, action, danger, ready = true, perform, close, children, buttons }: DialogProps) {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState("");

    async function submit(event: FormEvent) {
        event.preventDefault();
        if (busy || !ready)
            return;
        setBusy(true);
        setError("");
        try {
            await perform();
            close();
        } catch (refusal) {
            setError((refusal as Error).message);
            setBusy(false);
        }
    }

    return (
        <Modal isOpen variant="medium" position="top" onClose={close} aria-labelledby="dialog-title">
            <ModalHeader title={title} labelId="dialog-title" titleIconVariant={danger ? "warning" : undefined!} />
            <ModalBody>
                <Form id="dialog-form" onSubmit={submit} isWidthLimited>
                    <Refusal error={error} />
                    {children}
                </Form>
            </ModalBody>
            <ModalFooter>
                <Button type="submit" form="dialog-form" variant={danger ? "danger" : "primary"} isLoading={busy}
                        isDisabled={busy || !ready}>
                    {action}
                </Button>
                {buttons}
                <Button variant="link" onClick={close}>Cancel</Button>
            </ModalFooter>
        </Modal>
    );
}
