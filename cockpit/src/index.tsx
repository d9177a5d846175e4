/* SPDX-License-Identifier: MIT */
import "@patternfly/react-core/dist/styles/base.css";
import "./index.css";
import { createRoot } from "react-dom/client";

import { followTheme } from "./lib/theme";
import { App } from "./ui/app";

followTheme();
createRoot(document.getElementById("app")!).render(<App />);
