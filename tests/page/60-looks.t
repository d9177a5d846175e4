#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/*
 * How the page looks, in light and dark, wide and on a phone: pictures in build/page/shots for people to look at; and what
 * a program can see of that: nothing is cut off, axe finds nothing that keeps anybody out, and the keyboard does all.
 */
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

const { startArbiter } = require("./lib/arbiter.js");
const { TOP } = require("./lib/host.js");
const { pageTest } = require("./lib/page-test.js");
const { vmOpens } = require("./lib/vm.js");

const GIB = 1024 ** 3;
const GPU = "0000:02:00.0";
/* Evaluated, for Cockpit's content security policy lets no script in. */
const AXE = fs.readFileSync(path.join(TOP, "cockpit/node_modules/axe-core/axe.min.js"), "utf8");
const TABS = ["overview", "slices", "use", "history", "tenants", "events"];

/** A host with something of all that the page can show. */
function fill(host) {
    const uuid = number => `c0ffee00-0000-4000-8000-00000000000${number}`;
    const use = {
        [uuid(1)]: [4.2, 0.35], [uuid(2)]: [1.1, 0.12], [uuid(3)]: [2.6, 0.22],
    };

    host.call("SetTenant", "research", "{'Vram': <uint64 21474836480>, 'Compute': <uint32 150>, 'Vgpus': <uint32 4>}");
    host.call("SetTenant", "render", "{'Vram': <uint64 17179869184>, 'Users': <['daemon']>}");
    host.call("SetTenant", "web", "{'Vgpus': <uint32 1>}");
    host.create(`{'Door': <'vm'>, 'Type': <'half'>, 'Gpus': <['${GPU}']>, 'Tenant': <'research'>, 'Define': <true>,
        'Uuids': <['${uuid(1)}']>}`);
    host.create(`{'Type': <'eighth'>, 'Gpus': <['${GPU}']>, 'Tenant': <'web'>, 'Door': <'native'>,
        'Name': <'frontend'>, 'Uuids': <['${uuid(2)}']>, 'Cap': <uint32 40>}`);
    host.create(`{'Type': <'quarter'>, 'Gpus': <['${GPU}']>, 'Tenant': <'render'>, 'Door': <'guarded'>,
        'Name': <'blender'>, 'Uuids': <['${uuid(3)}']>}`);
    host.create(`{'Door': <'vm'>, 'Type': <'half'>, 'Gpus': <['0000:03:00.0']>, 'Tenant': <'research'>,
        'Class': <'burstable'>, 'Define': <true>, 'Uuids': <['${uuid(4)}']>}`);
    host.create(`{'Door': <'vm'>, 'Type': <'half'>, 'Gpus': <['0000:03:00.0']>, 'Tenant': <'render'>,
        'Class': <'best-effort'>, 'Compute': <uint32 10>, 'Uuids': <['${uuid(5)}']>}`);
    host.create(`{'Type': <'quarter'>, 'Gpus': <['0000:03:00.0']>, 'Class': <'best-effort'>,
        'Compute': <uint32 10>, 'Door': <'native'>, 'Name': <'batch'>, 'Uuids': <['${uuid(6)}']>}`);
    vmOpens(host.tree, uuid(1), "lab-1");
    startArbiter(host.tree, GPU, () => Object.entries(use).map(([id, [gib, share]]) => ({
        id, members: 1, vram_used: Math.round(gib * GIB), waited_ns: Math.round(performance.now() * 5e4),
        gpu_ns: Math.round((performance.now() + 900 * Math.sin(performance.now() / 4000)) * 1e6 * share),
    })));
}

/** Half a year of use, of the same slices: what they use meanwhile is added to it. */
function fillHistory(host) {
    const rows = [];

    for (let months = 0; months < 6; months++) {
        const now = new Date();
        const hour = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1) / 1000;

        for (const [number, tenant, type, gib, hours] of [[1, "research", "half", 8, 500 - 60 * months],
            [2, "web", "eighth", 2, 700 - 20 * months], [3, "render", "quarter", 4, 90 * (6 - months)]])
            rows.push(`(${hour}, 'c0ffee00-0000-4000-8000-00000000000${number}', '${tenant}', '${GPU}',
                'amdgpu-vgpu-${type}', ${3600 * hours}, ${1800 * hours}, ${gib * GIB}, ${0.75 * gib * GIB},
                ${3600 * hours * gib * GIB}, ${3600 * hours * 25}, ${hours * 600e9}, 1)`);
    }
    host.sqlOfMeter(`INSERT INTO usage_month VALUES ${rows.join(", ")}`);
}

pageTest(async ({ host, browser, page, point, see, gone, choose }) => {
    const ready = {
        overview: page.locator(`[data-gpu='${GPU}'] .vgpu-bar`),
        slices: page.getByRole("row", { name: /frontend/ }),
        use: page.getByRole("row", { name: /frontend .* web \d+ %/ }),
        history: page.getByRole("row", { name: /^web frontend / }),
        tenants: page.getByRole("row", { name: /^research/ }),
        events: page.getByRole("heading", { name: "Nothing has happened yet" }),
    };

    await host.stopVgpud();
    fillHistory(host);
    await host.startVgpud();
    fill(host);
    await page.goto(host.url());
    for (const tab of TABS) {
        await point(`${tab}: axe finds nothing, nothing is cut off, light and dark, wide and narrow`, async () => {
            const faults = [];

            await page.goto(host.url(tab));
            await page.reload();
            await see(ready[tab]);
            if (tab === "use")
                await page.waitForTimeout(30000);
            for (const size of ["wide", "narrow"]) {
                await browser.resize(size);
                for (const style of ["light", "dark"]) {
                    await browser.setStyle(style);
                    await browser.shot(`${tab}-${size}-${style}`);
                    faults.push(...await barriers(page), ...await cutOff(page));
                }
            }
            await browser.resize("wide");
            await browser.setStyle("light");
            assert.deepStrictEqual(faults, []);
        });
    }
    await point("dialogs are whole on a phone, and axe finds nothing in them", async () => {
        const dialog = page.getByRole("dialog");

        await page.goto(host.url("slices"));
        await see(ready.slices);
        await page.getByRole("button", { name: "Make a slice" }).click();
        await dialog.getByRole("button", { name: "Limits and shares" }).click();
        await see(dialog.getByLabel("Weight"));
        await page.waitForTimeout(400);
        await browser.shot("create-wide-light");
        assert.deepStrictEqual(await barriers(page), []);
        await browser.resize("narrow");
        await browser.setStyle("dark");
        await browser.shot("create-narrow-dark");
        assert.deepStrictEqual(await barriers(page), []);
        assert.deepStrictEqual(await cutOff(page), []);
        await page.keyboard.press("Escape");
        await gone(dialog);
        await browser.resize("wide");
        await page.goto(host.url());
        await choose(GPU, "Switch mode…");
        await browser.shot("mode-wide-dark");
        assert.deepStrictEqual(await barriers(page), []);
        await page.keyboard.press("Escape");
        await browser.setStyle("light");
    });
    await point("the keyboard reaches a GPU's menu, opens a dialog, and comes back", async () => {
        const toggle = page.getByRole("button", { name: `Actions for ${GPU}` });

        await page.goto(host.url());
        await see(toggle);
        for (let i = 0; i < 30 && !(await toggle.evaluate(it => it === document.activeElement)); i++)
            await page.keyboard.press("Tab");
        assert.ok(await toggle.evaluate(it => it === document.activeElement), "Tab reaches the menu");
        await page.keyboard.press("Enter");
        await see(page.locator("[role=menuitem]:focus").getByText("Switch mode…"));
        await page.keyboard.press("Enter");
        await see(page.getByRole("dialog"));
        await page.keyboard.press("Escape");
        await gone(page.getByRole("dialog"));
        await see(page.locator(":focus").and(toggle));
    });
    await point("in Cockpit's shell it is a page like the others", async () => {
        await page.goto(host.shellUrl());
        await see(page.getByRole("link", { name: "GPUs" }));
        await see(page.frameLocator("iframe[name='cockpit1:localhost/mdev-vgpu']").locator(".vgpu-bar"));
        await browser.resize("tall");
        await page.waitForTimeout(1000);
        await browser.shot("shell-tall-light");
        await browser.resize("wide");
        await browser.setStyle("dark");
        await page.waitForTimeout(1000);
        await browser.shot("shell-wide-dark");
    });
    /* For the pages: the axes of Use are full, and it is the last, for the history would have what was used. */
    if (process.env.PICTURES) {
        await browser.setStyle("light");
        await page.goto(host.url("use"));
        await page.waitForTimeout(125000);
        await browser.shot("use-first-light", { clip: { x: 0, y: 0, width: 1280, height: 640 } });
    }
});

/** What breaks axe's rules for WCAG 2.1 AA. */
async function barriers(page) {
    await page.evaluate(AXE);
    const found = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));

    return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}

/** Parts of the page that reach beyond the window. */
function cutOff(page) {
    return page.evaluate(() => [...document.querySelectorAll("body *")].filter(element => {
        const { left, right, width } = element.getBoundingClientRect();

        return width && (right > window.innerWidth + 1 || left < -1) && !element.closest(".pf-v6-c-tabs, .pf-v6-screen-reader");
    }).map(element => element.outerHTML.slice(0, 200)));
}
