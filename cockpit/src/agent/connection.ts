/* SPDX-License-Identifier: MIT */
/** The way to vgpud on the system bus, which may end and come back. */

const NAME = "org.mdev_vgpu.Host1";

export type Link = "connecting" | "up" | "away";

export interface ConnectionEvents {
    /** vgpud is there. The client's objects and subscriptions are new. */
    up(client: CockpitDBusClient): void;
    /** vgpud has ended, or cannot be started. */
    away(): void;
}

export class Connection {
    private client: CockpitDBusClient | null = null;

    constructor(private readonly events: ConnectionEvents) {
        const bus = cockpit.dbus("org.freedesktop.DBus", { bus: "system" });
        const match = { interface: "org.freedesktop.DBus", member: "NameOwnerChanged", arg0: NAME };

        bus.subscribe(match, (_path, _iface, _signal, args) => {
            if (args[2])
                this.open();
            else
                this.drop();
        });
    }

    /** Asks D-Bus for vgpud, which starts it if it is not running. */
    open() {
        this.client?.close();
        const client = cockpit.dbus(NAME, { bus: "system", superuser: "try" });

        this.client = client;
        client.addEventListener("close", () => {
            if (client === this.client)
                this.drop();
        });
        client.addEventListener("owner", (_event, owner) => {
            if (client === this.client && owner)
                this.events.up(client);
        });
    }

    private drop() {
        const client = this.client;

        this.client = null;
        client?.close();
        this.events.away();
    }
}
