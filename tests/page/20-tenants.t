#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/* Tenants and their quotas: made, used up, refused, changed, removed. */
"use strict";

const assert = require("node:assert");

const { pageTest } = require("./lib/page-test.js");

pageTest(async ({ host, page, point, see, gone, choose }) => {
    const dialog = page.getByRole("dialog");
    const field = label => dialog.getByLabel(label);
    const submit = name => dialog.getByRole("button", { name, exact: true }).click();
    const row = page.getByRole("row", { name: /^red/ });

    await point("a tenant is made with quotas and users", async () => {
        await page.goto(host.url("tenants"));
        await see(page.getByRole("heading", { name: "No tenants" }));
        await page.getByRole("button", { name: "Make a tenant" }).click();
        await field("Name").fill("red");
        await field("GPU memory").fill("6G");
        await field("Compute, in per cent").fill("50");
        await field("vGPUs and slices").fill("2");
        await field("Users").fill("root, daemon");
        await submit("Make");
        await gone(dialog);
        await see(row.getByText("0 B of 6.0 GiB"));
        await see(row.getByText("root, daemon"));
        assert.match(host.call("ListTenants"), /'Vram': <uint64 6442450944>/);
    });
    await point("a slice counts for its tenant", async () => {
        await page.getByRole("tab", { name: "Slices" }).click();
        await page.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption("amdgpu-vgpu-quarter");
        await field("Tenant").selectOption("red");
        await submit("Make");
        await gone(dialog);
        await page.getByRole("tab", { name: "Tenants" }).click();
        await see(row.getByText("4.0 GiB of 6.0 GiB"));
        await see(row.getByText("1 of 2"));
    });
    await point("a request beyond the quota is refused with vgpud's sentence", async () => {
        await page.getByRole("tab", { name: "Slices" }).click();
        await page.getByRole("button", { name: "Make a slice" }).click();
        await field("Type").selectOption("amdgpu-vgpu-quarter");
        await field("Tenant").selectOption("red");
        await submit("Make");
        await see(dialog.getByRole("alert").getByText(/tenant red/));
        await submit("Cancel");
        await gone(dialog);
    });
    await point("a quota below what the tenant has is refused", async () => {
        await page.getByRole("tab", { name: "Tenants" }).click();
        await choose("tenant red", "Change…");
        await field("GPU memory").fill("1G");
        await submit("Change");
        await see(dialog.getByRole("alert"));
        assert.match(host.call("ListTenants"), /'Vram': <uint64 6442450944>/);
    });
    await point("a larger quota is taken, and an empty field is no limit", async () => {
        await field("GPU memory").fill("12G");
        await field("vGPUs and slices").fill("");
        await submit("Change");
        await gone(dialog);
        await see(row.getByText("4.0 GiB of 12.0 GiB"));
        await see(row.getByText("1, no limit"));
    });
    await point("a tenant with slices is not removed", async () => {
        await choose("tenant red", "Remove…");
        await submit("Remove");
        await see(dialog.getByRole("alert"));
        await submit("Cancel");
        await gone(dialog);
    });
    await point("a tenant leads to its slices", async () => {
        await row.getByRole("button", { name: "red", exact: true }).click();
        await see(page.getByRole("row", { name: /quarter.*red/ }));
        assert.strictEqual(await page.getByLabel("Tenant", { exact: true }).inputValue(), "red");
    });
    await point("without slices it is removed", async () => {
        const uuid = await page.locator("[data-row]").getAttribute("data-row");

        await choose(uuid.slice(0, 8), "Remove…");
        await submit("Remove");
        await gone(dialog);
        await page.getByRole("tab", { name: "Tenants" }).click();
        await choose("tenant red", "Remove…");
        await submit("Remove");
        await gone(dialog);
        await see(page.getByRole("heading", { name: "No tenants" }));
    });
});
