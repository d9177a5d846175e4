/* SPDX-License-Identifier: MIT */
/* administrator.js PORT KEY: what an administrator sees and does on the page of the host that ssh reaches so (l1.js). */
"use strict";

const { L1 } = require("../../page/lib/l1.js");
const { pageTest } = require("../../page/lib/page-test.js");
const { changes } = require("./changes.js");
const { modes } = require("./modes.js");
const { picture } = require("./picture.js");
const { use } = require("./use.js");

pageTest(async tools => {
    const all = { ...tools, ui: tools.host.content(tools.page) };

    await picture(all);
    await changes(all);
    await use(all);
    await modes(all);
}, new L1(...process.argv.slice(2)));
