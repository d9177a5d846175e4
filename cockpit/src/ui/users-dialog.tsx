/* SPDX-License-Identifier: MIT */
/** Who uses a GPU now: VMs, vGPUs, containers, processes. */

import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/esm/components/Modal";
import { Spinner } from "@patternfly/react-core/dist/esm/components/Spinner";
import { useEffect, useState } from "react";

import { host } from "../agent/host";
import type { Gpu } from "../agent/model";
import { Refusal } from "./dialog";

export function UsersDialog({ gpu, close }: { gpu: Gpu; close: () => void }) {
    const [users, setUsers] = useState<string[] | null>(null);
    const [error, setError] = useState("");

    useEffect(() => {
        host.calls.listUsers(gpu.path).then(setUsers, refusal => setError((refusal as Error).message));
    }, [gpu.path]);
    return (
        <Modal isOpen variant="medium" position="top" onClose={close} aria-labelledby="users-title">
            <ModalHeader title={`Users of ${gpu.address}`} labelId="users-title" />
            <ModalBody>
                <Refusal error={error} />
                {!users && !error && <Spinner size="lg" aria-label="Looking for users" />}
                {users?.length === 0 && <p>Nobody uses this GPU.</p>}
                <ul className="vgpu-steps">{users?.map(user => <li key={user}>{user}</li>)}</ul>
            </ModalBody>
            <ModalFooter><Button variant="primary" onClick={close}>Close</Button></ModalFooter>
        </Modal>
    );
}
