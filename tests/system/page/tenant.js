/* SPDX-License-Identifier: MIT */
/*
 * tenant.js PORT KEY: what a user of tenant lab, who is no administrator, sees and may do on the page of the host that ssh
 * reaches so (l1.js).
 */
"use strict";

const assert = require("node:assert");

const { L1 } = require("../../page/lib/l1.js");
const { pageTest } = require("../../page/lib/page-test.js");
const { gpuOf, MIB, vgpusOf, words } = require("./truth.js");

pageTest(async ({ host, browser, page, point, see, gone, choose }) => {
    const ui = host.content(page);
    const dialog = ui.getByRole("dialog");
    const field = label => dialog.getByLabel(label, { exact: true });
    const submit = name => dialog.getByRole("button", { name, exact: true }).click();
    const gpu = await gpuOf(host);
    const before = await vgpusOf(host);
    const card = ui.locator(`[data-gpu='${gpu.address}']`);
    let made = "";

    async function askFor(type) {
        await ui.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption(gpu.type(type));
        await field("Tenant").selectOption("lab");
        await submit("Make");
    }

    await point("a tenant's user sees how much is taken, and no slice or tenant of others", async () => {
        await host.logIn(page, "rita", "rita");
        await see(card.getByRole("img", { name: `others ${words(gpu.taken)}, free ${words(gpu.free)}` }));
        await ui.getByRole("tab", { name: "Slices" }).click();
        await see(ui.getByRole("heading", { name: "No slices" }));
        await ui.getByRole("tab", { name: "Tenants" }).click();
        await see(ui.getByRole("row", { name: /^lab/ }));
        assert.strictEqual(await ui.locator("[data-row]").count(), 1);
        await browser.shot("host-tenants");
    });
    await point("within the quota a vGPU is made, and is in sysfs", async () => {
        await ui.getByRole("tab", { name: "Slices" }).click();
        await askFor("eighth");
        await gone(dialog);
        const now = await vgpusOf(host);

        [made] = [...now.keys()].filter(uuid => !before.has(uuid));
        assert.deepStrictEqual([now.get(made).vram, now.get(made).tenant], [64 * MIB, "lab"]);
        await see(ui.locator(`[data-row='${made}']`));
        assert.strictEqual(await ui.locator("[data-row]").count(), 1);
    });
    await point("beyond it, vgpud's sentence names the quota", async () => {
        await askFor("sixteenth");
        await see(dialog.getByRole("alert").getByText(/tenant lab/));
        await browser.shot("host-quota");
        await submit("Cancel");
        await gone(dialog);
        assert.strictEqual((await vgpusOf(host)).size, before.size + 1);
    });
    await point("the whole GPU is not the tenant's to drain", async () => {
        await ui.getByRole("tab", { name: "GPUs" }).click();
        await choose(gpu.address, "Drain");
        await see(card.getByText(/user rita may not do this/));
        await browser.shot("host-may-not");
    });
    await point("polkit makes nobody an administrator who is none, and Cockpit says so", async () => {
        await page.getByRole("button", { name: "Limited access" }).click();
        await see(page.getByRole("heading", { name: "Problem becoming administrator" }));
        await browser.shot("host-polkit-none");
        await page.getByRole("dialog").getByRole("button", { name: "Close" }).first().click();
        await see(page.getByRole("button", { name: "Limited access" }));
    });
    await point("the own vGPU is removed", async () => {
        await ui.getByRole("tab", { name: "Slices" }).click();
        await choose(made.slice(0, 8), "Remove…");
        await submit("Remove");
        await gone(dialog);
        await see(ui.getByRole("heading", { name: "No slices" }));
        assert.deepStrictEqual([...(await vgpusOf(host)).keys()], [...before.keys()]);
    });
}, new L1(...process.argv.slice(2)));
