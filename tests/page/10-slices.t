#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/* GPUs are shown; slices are made, refused, changed and removed; what vgpud says is in the page, and the reverse. */
"use strict";

const assert = require("node:assert");

const { pageTest } = require("./lib/page-test.js");

pageTest(async ({ host, browser, page, point, see, gone, choose }) => {
    const card = page.locator("[data-gpu='0000:02:00.0']");
    const dialog = page.getByRole("dialog");
    const field = label => dialog.getByLabel(label, { exact: true });
    const submit = name => dialog.getByRole("button", { name, exact: true }).click();

    await point("the GPUs of the host are shown with their modes", async () => {
        await page.goto(host.url());
        await see(card.getByText("Shared", { exact: true }));
        await see(page.locator("[data-gpu='0000:04:00.0']").getByText("Passed through", { exact: true }));
        await see(page.locator("[data-gpu='0000:05:00.0']").getByText("Host only", { exact: true }));
        await see(card.getByRole("img", { name: "free 16.0 GiB" }));
    });
    await point("a vGPU is made, and vgpud has it", async () => {
        await page.goto(host.url("slices"));
        await see(page.getByRole("heading", { name: "No slices" }));
        await page.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption("amdgpu-vgpu-half");
        await field("GPU").selectOption("0000:02:00.0");
        await submit("Make");
        await gone(dialog);
        await see(page.getByRole("row", { name: /vGPU for a VM.*0000:02:00\.0/ }));
        assert.match(host.call("FindSlices", "{'Doors': <['vm']>}"), /'Type': <'amdgpu-vgpu-half'>/);
    });
    await point("a slice for a container is made", async () => {
        await page.getByRole("button", { name: "Make a slice" }).click();
        await field("For").selectOption("native");
        await field("Name").fill("web");
        await field("Type").selectOption("amdgpu-vgpu-quarter");
        await field("GPU").selectOption("0000:02:00.0");
        await submit("Make");
        await gone(dialog);
        await see(page.getByRole("row", { name: /web.*Container slice, native/ }));
        assert.match(host.call("FindSlices", "{'Doors': <['native', 'guarded']>}"), /'Name': <'web'>/);
    });
    await point("a refused request shows vgpud's sentence, and makes nothing", async () => {
        let sentence = "";

        try {
            host.create("{'Door': <'vm'>, 'Type': <'amdgpu-vgpu-half'>, 'Gpus': <['0000:02:00.0']>}");
        } catch (error) {
            sentence = /Error\.NoRoom: (.*)/.exec(error.stderr)[1];
        }
        assert.match(sentence, /are free/);
        await page.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption("amdgpu-vgpu-half");
        await field("GPU").selectOption("0000:02:00.0");
        await submit("Make");
        await see(dialog.getByRole("alert"));
        assert.ok((await dialog.getByRole("alert").textContent()).includes(sentence));
        await browser.shot("refused");
        await page.keyboard.press("Escape");
        await gone(dialog);
        assert.strictEqual(host.call("FindSlices", "{'Doors': <['vm']>}").match(/'Uuid'/g).length, 1);
    });
    await point("a size that is none can't be sent", async () => {
        await page.getByRole("button", { name: "Make a slice" }).click();
        await field("GPU memory").fill("much");
        await see(dialog.getByText("Write a size, such as 2G or 512M."));
        assert.ok(await dialog.getByRole("button", { name: "Make", exact: true }).isDisabled());
        await submit("Cancel");
        await gone(dialog);
    });
    await point("a slice is changed while it is there", async () => {
        await choose("web", "Change…");
        await field("GPU memory").fill("2G");
        await field("Weight").fill("77");
        await submit("Change");
        await gone(dialog);
        await see(page.getByRole("row", { name: /web.*2\.0 GiB.*weight 77/ }));
        assert.match(host.call("FindSlices", "{'Doors': <['native', 'guarded']>}"), /'Weight': <uint32 77>/);
    });
    await point("the picture has it, by tenant and size", async () => {
        await page.goto(host.url());
        await see(card.getByRole("img", { name: "no tenant 10.0 GiB, free 6.0 GiB" }));
        await see(card.getByRole("button", { name: "2 slices" }));
    });
    await point("the card leads to its slices", async () => {
        await card.getByRole("button", { name: "2 slices" }).click();
        await see(page.getByRole("row", { name: /web/ }));
        assert.strictEqual(await page.getByLabel("GPU", { exact: true }).inputValue(), "0000:02:00.0");
    });
    await point("a slice is removed after a question", async () => {
        await choose("web", "Remove…");
        await see(dialog.getByText("containers cannot ask for it any more"));
        await submit("Remove");
        await gone(dialog);
        await gone(page.getByRole("row", { name: /web/ }));
        assert.doesNotMatch(host.call("FindSlices", "{'Doors': <['native', 'guarded']>}"), /'Name': <'web'>/);
    });
    await point("what is made beside the page appears by itself", async () => {
        host.create("{'Type': <'eighth'>, 'Door': <'guarded'>, 'Name': <'batch'>}");
        await see(page.getByRole("row", { name: /batch.*Container slice, guarded/ }).or(
            page.getByText("No slice fits what was chosen above.")));
        await page.getByLabel("GPU", { exact: true }).selectOption("");
        await see(page.getByRole("row", { name: /batch/ }));
    });
});
