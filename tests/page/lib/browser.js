/* SPDX-License-Identifier: MIT */
/* Headless Chromium, and pictures of what it shows. */
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const { TOP } = require("./host.js");
const { chromium } = require(path.join(TOP, "cockpit/node_modules/playwright-core"));

const SHOTS = path.join(TOP, "build/page/shots");

const sizes = { wide: { width: 1280, height: 900 }, tall: { width: 1280, height: 1130 }, narrow: { width: 360, height: 780 } };

const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"];

class Browser {
    static async open() {
        const browser = new Browser();

        browser.profile = fs.mkdtempSync(path.join(os.tmpdir(), "page-browser-"));
        browser.context = await chromium.launchPersistentContext(browser.profile, {
            executablePath: "/usr/bin/chromium", headless: true, args, viewport: sizes.wide,
            env: { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: "", HOME: browser.profile },
        });
        browser.page = browser.context.pages()[0];
        browser.faults = [];
        browser.page.on("pageerror", error => browser.faults.push(error.stack));
        /* Cockpit's shell asks for files that this tree does not have. */
        browser.page.on("console", message => {
            if (message.type() === "error" && message.location().url.includes("/mdev-vgpu/"))
                browser.faults.push(message.text());
        });
        return browser;
    }

    async resize(size) {
        await this.page.setViewportSize(sizes[size]);
    }

    /** Cockpit's own switch between light and dark. */
    async setStyle(style) {
        await this.page.evaluate(chosen => {
            localStorage.setItem("shell:style", chosen);
            window.dispatchEvent(new CustomEvent("cockpit-style", { detail: { style: chosen } }));
        }, style);
        /* PatternFly fades colours. */
        await this.page.waitForTimeout(400);
    }

    async shot(name, options = {}) {
        fs.mkdirSync(SHOTS, { recursive: true });
        await this.page.screenshot({ path: path.join(SHOTS, `${name}.png`), ...options });
    }

    async close() {
        await this.context.close();
        fs.rmSync(this.profile, { recursive: true, force: true });
    }
}

module.exports = { Browser };
