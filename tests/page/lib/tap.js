/* SPDX-License-Identifier: MIT */
/* TAP for tests that are async functions, one after the other. */
"use strict";

let points = 0;
let red = 0;

/** Runs one test point. If it throws, it is red, and `onRed` is called; points that come later build on it, and are not run. */
async function point(name, body, onRed = async () => {}) {
    points++;
    if (red) {
        console.log(`not ok ${points} - ${name} (not run)`);
        return;
    }
    try {
        await body();
        console.log(`ok ${points} - ${name}`);
    } catch (error) {
        red++;
        console.log(`not ok ${points} - ${name}`);
        console.log(String(error.stack ?? error).replace(/^/gm, "# "));
        await onRed(points);
    }
}

/** Prints the plan. The exit status. */
function finish() {
    console.log(`1..${points}`);
    return red ? 1 : 0;
}

module.exports = { point, finish };
