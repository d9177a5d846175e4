#!/usr/bin/node
/* SPDX-License-Identifier: MIT */
/* What slices use now, from the GPU's arbiter; and what they used in past months, from the meter's database. */
"use strict";

const { startArbiter } = require("./lib/arbiter.js");
const { pageTest } = require("./lib/page-test.js");

const GPU = "0000:02:00.0";
const GIB = 1024 ** 3;
const UUID = "c0ffee00-0000-4000-8000-000000000001";

/** The hour in which a month of the past began, and its name. */
function monthAgo(months) {
    const now = new Date();
    const begin = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1));

    return { hour: begin.getTime() / 1000, name: begin.toISOString().slice(0, 7) };
}

pageTest(async ({ host, page, point, see }) => {
    const past = monthAgo(2);

    await point("without slices there is nothing to show", async () => {
        await page.goto(host.url("use"));
        await see(page.getByRole("heading", { name: "Nothing to show" }));
    });
    await point("use of a slice is shown as the arbiter tells it", async () => {
        host.call("SetTenant", "red", "{'Vram': <uint64 0>}");
        host.create(`{'Type': <'half'>, 'Door': <'native'>, 'Name': <'web'>, 'Tenant': <'red'>,
            'Gpus': <['${GPU}']>, 'Uuids': <['${UUID}']>}`);
        /* Half of the time that goes by; the page looks at another moment than this. */
        startArbiter(host.tree, GPU, () => [{
            id: UUID, members: 1, vram_used: 3 * GIB, gpu_ns: Math.round(performance.now() * 5e5),
            waited_ns: Math.round(performance.now() * 1e5), throttled_ns: 0,
        }]);
        await see(page.getByRole("row", { name: /web 1 process red [45]\d % 0\.(09|1\d) s\/s 3\.0 GiB of 8\.0 GiB/ }));
        await see(page.getByRole("img", { name: /GPU time: [45]\d %/ }));
        await see(page.getByRole("img", { name: "Memory in use: 3.0 GiB of 16.0 GiB" }));
    });
    await point("what a slice used in past months is a plot and a table", async () => {
        await host.stopVgpud();
        host.sqlOfMeter(`INSERT INTO usage_month VALUES (${past.hour}, '${UUID}', 'red', '${GPU}', 'amdgpu-vgpu-half', 36000, 18000,
            ${8 * GIB}, ${2 * GIB}, ${36000 * 8 * GIB}, ${36000 * 50}, 7200000000000, 1)`);
        await host.startVgpud();
        await page.getByRole("tab", { name: "History" }).click();
        await page.getByRole("button", { name: `80.0 ${past.name}` }).click();
        await see(page.getByRole("row", { name: new RegExp(`red ${UUID} half 10\\.0 50 % 2\\.0 h 2\\.0 GiB of 8\\.0 GiB`) }));
    });
    await point("another measure is another plot", async () => {
        await page.getByLabel("What is shown").selectOption("gpuHours");
        await see(page.getByRole("button", { name: `2.0 ${past.name}` }));
    });
});
