/* SPDX-License-Identifier: MIT */
/* A test of the page: a host and a browser that shows it, for a function that names its points. */
"use strict";

const path = require("node:path");

const { Browser } = require("./browser.js");
const { Host } = require("./host.js");
const tap = require("./tap.js");

/** How long what must come may take, milliseconds: a busy machine is no failure. */
const PATIENCE = 30000;

/**
 * Runs `body({ host, browser, page, point, see, gone, choose })`, and ends the process.
 * point(name, async function): a test point. see(locator), gone(locator): wait for it. choose(menu, item): an entry of a
 * menu behind three dots.
 */
function pageTest(body, host = new Host()) {
    const name = path.parse(process.argv[1]).name;

    run(name, body, host).then(status => process.exit(status), error => {
        console.log(`Bail out! ${error.stack}`);
        process.exit(1);
    });
}

async function run(name, body, host) {
    let browser;

    try {
        await host.start();
        browser = await Browser.open();
        const { page } = browser;

        page.setDefaultTimeout(host.patience ?? PATIENCE);
        await body({
            host, browser, page,
            point: (title, test) => tap.point(title, test, number => browser.shot(`red-${name}-${number}`)),
            see: locator => locator.first().waitFor(),
            gone: locator => locator.first().waitFor({ state: "detached" }),
            choose: async (menu, item) => {
                await host.content(page).getByRole("button", { name: `Actions for ${menu}`, exact: true }).click();
                await host.content(page).getByRole("menuitem", { name: item }).click();
            },
        });
        await tap.point("the page raised no error", () => {
            if (browser.faults.length)
                throw new Error(browser.faults.join("\n"));
        });
    } finally {
        await browser?.close();
        await host.stop();
    }
    return tap.finish();
}

module.exports = { pageTest };
