/* SPDX-License-Identifier: MIT */
import "@patternfly/react-core/dist/styles/base.css";
import { createRoot } from "react-dom/client";

import { followTheme } from "./lib/theme";
import { App } from "./ui/app";
/* After PatternFly's own styles, which App brings along. */
import "./index.css";

followTheme();
createRoot(document.getElementById("app")!).render(<App />);
