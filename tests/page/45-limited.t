#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/* A user without administrative access: the page says so, and vgpud decides. */
"use strict";

const assert = require("node:assert");

const { Host } = require("./lib/host.js");
const { pageTest } = require("./lib/page-test.js");

pageTest(async ({ host, browser, page, point, see, gone }) => {
    const dialog = page.getByRole("dialog");

    await point("the page says what limited access means, and shows the GPUs", async () => {
        host.create("{'Type': <'quarter'>, 'Door': <'native'>, 'Name': <'web'>}");
        await page.goto(host.url());
        await see(page.getByText("Limited access"));
        await see(page.getByText("turn on administrative access"));
        await see(page.getByRole("img", { name: "Memory of 0000:02:00.0: others 4.0 GiB, free 12.0 GiB" }));
        assert.strictEqual(await page.getByText("may not do this").count(), 0);
        await browser.shot("limited");
    });
    await point("slices of others are not shown", async () => {
        await page.getByRole("tab", { name: "Slices" }).click();
        await see(page.getByRole("heading", { name: "No slices" }));
    });
    await point("vgpud refuses a new one, and the page shows why", async () => {
        await page.getByRole("button", { name: "Make a slice" }).click();
        await dialog.getByLabel("Type").fill("half");
        await dialog.getByRole("button", { name: "Make", exact: true }).click();
        await see(dialog.getByRole("alert").getByText(/user daemon may not do this/));
        await page.keyboard.press("Escape");
        await gone(dialog);
        assert.doesNotMatch(host.call("FindSlices", "{'Doors': <['vm']>}"), /Uuid/);
    });
    await point("a GPU is not switched either", async () => {
        await page.getByRole("tab", { name: "GPUs" }).click();
        await page.getByRole("button", { name: "Actions for 0000:02:00.0" }).click();
        await page.getByRole("menuitem", { name: "Drain" }).click();
        await see(page.locator("[data-gpu='0000:02:00.0']").getByText(/user daemon may not do this/));
    });
}, new Host("daemon"));
