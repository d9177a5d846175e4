/* SPDX-License-Identifier: MIT */
/** What this page uses of Cockpit's own cockpit.js, which Cockpit serves as base1/cockpit.js. */

/** A value with its D-Bus type, as dictionaries of a{sv} have them. */
interface CockpitVariant {
    t: string;
    v: unknown;
}

interface CockpitProxy {
    path: string;
    valid: boolean;
    /** A signal of the object's, by its name, with its arguments. */
    addEventListener(signal: string, handler: (event: Event, ...args: unknown[]) => void): void;
    [property: string]: unknown;
}

type CockpitProxyHandler = (event: Event, proxy: CockpitProxy) => void;

interface CockpitProxies {
    [path: string]: unknown;
    wait(callback: () => void): void;
    addEventListener(name: "added" | "changed" | "removed", handler: CockpitProxyHandler): void;
}

interface CockpitDBusClient {
    call(
        path: string,
        iface: string,
        method: string,
        args: unknown[],
        options?: { type?: string; timeout?: number },
    ): Promise<unknown[]>;
    proxies(iface: string, pathNamespace: string): CockpitProxies;
    subscribe(
        match: Record<string, string>,
        handler: (path: string, iface: string, signal: string, args: unknown[]) => void,
    ): { remove(): void };
    addEventListener(name: "close", handler: (event: Event, ended: { problem?: string }) => void): void;
    addEventListener(name: "owner", handler: (event: Event, owner: string | null) => void): void;
    close(problem?: string): void;
}

interface CockpitPermission {
    /** null: not known yet. */
    allowed: boolean | null;
    addEventListener(name: "changed", handler: () => void): void;
}

interface CockpitLocation {
    path: string[];
    options: Record<string, string>;
    go(path: string[], options?: Record<string, string>): void;
}

interface Cockpit {
    location: CockpitLocation;
    /** The page is not shown. */
    hidden: boolean;
    dbus(name: string, options: { bus: "system"; superuser?: "try" }): CockpitDBusClient;
    variant(type: string, value: unknown): CockpitVariant;
    permission(options: { admin: true }): CockpitPermission;
    addEventListener(name: "locationchanged" | "visibilitychange", handler: () => void): void;
    removeEventListener(name: "locationchanged" | "visibilitychange", handler: () => void): void;
}

declare const cockpit: Cockpit;
