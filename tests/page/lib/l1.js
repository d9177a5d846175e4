/* SPDX-License-Identifier: MIT */
/*
 * The rig's L1 as the page's host: real Cockpit, vgpud, systemd and polkit (tests/system/lib/VGPU/Page.pm prepares it). It is
 * reached by ssh: commands, and Cockpit's port.
 */
"use strict";

const { execFile } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { promisify } = require("node:util");

const { freePort, listens, start, stop } = require("./host.js");

const COCKPIT = 9090;
/** Every program in L1 runs on an emulated processor, Cockpit's bridge too. */
const PATIENCE = 180000;

class L1 {
    /** @param port - of L1's ssh, on this machine. @param key - a file with a key that L1 takes for root */
    constructor(port, key) {
        this.patience = PATIENCE;
        this.dir = fs.mkdtempSync(path.join(os.tmpdir(), "page-l1-"));
        this.ssh = ["-p", port, "-i", key, "-o", `ControlPath=${this.dir}/ssh`, "-o", "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=60"];
    }

    async start() {
        this.port = await freePort();
        this.forward = start("ssh", [...this.ssh, "-M", "-N", "-o", "ExitOnForwardFailure=yes",
            "-L", `127.0.0.1:${this.port}:127.0.0.1:${COCKPIT}`, "root@127.0.0.1"], {}, "inherit");
        await listens(this.port, this.forward);
    }

    /** A shell command in L1, as root: its output. A command that fails is thrown, with `stderr`. */
    async run(command) {
        const { stdout } = await promisify(execFile)("ssh", [...this.ssh, "root@127.0.0.1", command], { timeout: PATIENCE });

        return stdout.trim();
    }

    url(hash = "") {
        return `http://127.0.0.1:${this.port}/mdev-vgpu#/${hash}`;
    }

    /** Cockpit shows its pages in frames. */
    content(page) {
        return page.frameLocator("iframe[name='cockpit1:localhost/mdev-vgpu']");
    }

    /** Logs in, whoever was logged in before, and opens the page. Cockpit gives limited access first. */
    async logIn(page, user, password) {
        await page.context().clearCookies();
        await page.goto(this.url());
        await page.locator("#login-user-input").fill(user);
        await page.locator("#login-password-input").fill(password);
        await page.locator("#login-button").click();
        await this.content(page).getByRole("tab", { name: "GPUs" }).waitFor();
    }

    /**
     * Cockpit's "Limited access": by pkexec, so polkit asks for the user's own password. Does not wait for the answer.
     * @param asked - called when the question is there
     */
    async askForMore(page, password, asked = async () => {}) {
        await page.getByRole("button", { name: "Limited access" }).click();
        const dialog = page.getByRole("dialog");

        await dialog.locator("input[type=password]").fill(password);
        await asked();
        await dialog.getByRole("button", { name: "Authenticate" }).click();
    }

    async stop() {
        if (this.forward)
            await stop(this.forward);
        fs.rmSync(this.dir, { recursive: true, force: true });
    }
}

module.exports = { L1 };
