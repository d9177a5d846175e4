#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/* vgpud ends and comes back under the page, and is away when the page is opened. */
"use strict";

const { pageTest } = require("./lib/page-test.js");

pageTest(async ({ host, browser, page, point, see, gone }) => {
    const away = page.getByRole("heading", { name: "vgpud is not running" });
    const row = page.getByRole("row", { name: /^web/ });

    await point("the page shows a slice", async () => {
        host.create("{'Type': <'quarter'>, 'Door': <'native'>, 'Name': <'web'>}");
        await page.goto(host.url("slices"));
        await see(row);
    });
    await point("vgpud ends, and the page says so and what goes on", async () => {
        await host.stopVgpud();
        await see(away);
        await see(page.getByText("go on without it"));
        await browser.shot("away");
    });
    await point("vgpud is back, and the page is as before", async () => {
        await host.startVgpud();
        await see(row);
        await gone(away);
    });
    await point("the page works after that", async () => {
        host.call("RemoveSlice", "web", "{}");
        await see(page.getByRole("heading", { name: "No slices" }));
    });
    await point("a page that is opened while vgpud is away says so", async () => {
        await host.stopVgpud();
        await page.goto(host.url());
        await page.reload();
        await see(away);
    });
    await point("what can't be started stays away", async () => {
        await page.getByRole("button", { name: "Start vgpud" }).click();
        await see(away);
    });
    await point("and that page comes back by itself, too", async () => {
        await host.startVgpud();
        await see(page.locator("[data-gpu='0000:02:00.0']"));
    });
});
