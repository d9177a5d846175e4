/* SPDX-License-Identifier: MIT */
/* A host as the page sees it: a system bus, vgpud over a file tree (page_host.c), and Cockpit. Runs in the rig's tree. */
"use strict";

const { spawn, execFileSync } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");

const TOP = path.resolve(__dirname, "../../..");
const PACKAGE = "/usr/share/cockpit/mdev-vgpu";
/** The page is hidden on hosts that do not have this file. */
const ACTIVATION = "/usr/share/dbus-1/system-services/org.mdev_vgpu.Host1.service";

/** Starts a program that ends with this one, however that ends. */
function start(command, args, env, output) {
    return spawn("setpriv", ["--pdeathsig", "TERM", command, ...args],
        { env: { ...process.env, ...env }, stdio: ["ignore", output, output] });
}

/** Starts a program, and waits until its output fits `ready`. */
function startUntil(command, args, env, ready) {
    const child = start(command, args, env, "pipe");
    let text = "";

    return new Promise((resolve, reject) => {
        const look = data => {
            text += data;
            const match = ready.exec(text);
            if (match)
                resolve({ child, match });
        };

        child.stdout.on("data", look);
        child.stderr.on("data", look);
        child.on("error", reject);
        child.on("exit", status => reject(new Error(`${command} ended with ${status}:\n${text}`)));
    });
}

function stop(child, signal = "SIGTERM") {
    return new Promise(resolve => {
        if (child.exitCode !== null || child.signalCode !== null)
            return resolve();
        child.once("exit", resolve);
        child.kill(signal);
    });
}

/** A free port: that of a server that has just ended. */
function freePort() {
    return new Promise(resolve => {
        const server = net.createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();

            server.close(() => resolve(port));
        });
    });
}

/** Until something listens there. */
async function listens(port, child) {
    for (;;) {
        const there = await new Promise(resolve => {
            const socket = net.connect(port, "127.0.0.1", () => resolve(true));

            socket.on("error", () => resolve(false));
            socket.on("connect", () => socket.end());
        });
        if (there)
            return;
        if (child.exitCode !== null)
            throw new Error(`${child.spawnargs.join(" ")} ended with ${child.exitCode}`);
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

/** Cockpit finds the page where a package puts it. The tree is thrown away, and so is this. */
function installPage() {
    fs.rmSync(PACKAGE, { recursive: true, force: true });
    fs.symlinkSync(path.join(TOP, "build/cockpit"), PACKAGE);
    fs.mkdirSync(path.dirname(ACTIVATION), { recursive: true });
    fs.writeFileSync(ACTIVATION, "");
}

/** A bus as the system's, which takes every user; it does not say who may own what. */
const BUS = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
    "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
    <type>system</type>
    <listen>unix:tmpdir=/tmp</listen>
    <auth>EXTERNAL</auth>
    <policy context="default">
        <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
    </policy>
</busconfig>`;

class Host {
    /** @param user - who logs in to Cockpit */
    constructor(user = "root") {
        this.user = user;
        this.dir = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
        this.tree = path.join(this.dir, "tree");
        this.children = [];
    }

    async start() {
        installPage();
        const config = path.join(this.dir, "bus.conf");

        fs.writeFileSync(config, BUS);
        const bus = await startUntil("dbus-daemon", [`--config-file=${config}`, "--nofork", "--nopidfile",
            "--print-address=1"], {}, /^(unix:.*)\n/);

        this.children.push(bus.child);
        this.env = { DBUS_SYSTEM_BUS_ADDRESS: bus.match[1], HOME: this.dir };
        await this.startVgpud();
        await this.startCockpit();
    }

    async startVgpud() {
        const { child } = await startUntil(path.join(TOP, "build/page/page-host"), [this.tree], this.env, /^ready$/m);

        this.vgpud = child;
    }

    async stopVgpud() {
        await stop(this.vgpud);
    }

    async startCockpit() {
        this.port = await freePort();
        const home = path.join(this.dir, "home");
        const args = [`--reuid=${this.user}`, "--clear-groups", "/usr/lib/cockpit/cockpit-ws", "--no-tls", "--address", "127.0.0.1", "--port", String(this.port),
            "--local-session=/usr/bin/cockpit-bridge"];
        const log = fs.openSync(path.join(this.dir, "cockpit.log"), "a");

        fs.chmodSync(this.dir, 0o755);
        fs.mkdirSync(home);
        fs.chmodSync(home, 0o777);
        const child = start("setpriv", args, { ...this.env, HOME: home, XDG_RUNTIME_DIR: home }, log);

        this.children.push(child);
        await listens(this.port, child);
    }

    /** The page by itself, without Cockpit's shell around it. */
    url(hash = "") {
        return `http://127.0.0.1:${this.port}/cockpit/@localhost/mdev-vgpu/index.html#/${hash}`;
    }

    /** The page as users see it, in Cockpit's shell. */
    shellUrl(hash = "") {
        return `http://127.0.0.1:${this.port}/mdev-vgpu#/${hash}`;
    }

    /** Where the page is in what the browser shows. */
    content(page) {
        return page;
    }

    /** A method of vgpud's, asked for beside the page. `args` are in GVariant's text format. */
    call(method, ...args) {
        return execFileSync("gdbus", ["call", "--system", "-d", "org.mdev_vgpu.Host1", "-o", "/org/mdev_vgpu/manager",
            "-m", `org.mdev_vgpu.Host1.Manager.${method}`, ...args], { env: { ...process.env, ...this.env }, encoding: "utf8", stdio: "pipe" });
    }

    /** Makes slices as one request of CreateSlices has them. */
    create(request) {
        return this.call("CreateSlices", `[${request}]`);
    }

    /** Runs SQL in the meter's database; page-host, which has the meter, must not be running. */
    sqlOfMeter(text) {
        execFileSync("sqlite3", [path.join(this.tree, "var/lib/vgpu/meter.db"), text]);
    }

    async stop() {
        if (this.vgpud)
            await this.stopVgpud();
        for (const child of this.children.reverse())
            await stop(child);
        fs.rmSync(this.dir, { recursive: true, force: true });
    }
}

module.exports = { Host, TOP, freePort, listens, start, stop };
