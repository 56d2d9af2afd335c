/** The page's colours, read from its CSS variables; read again when the theme changes. */

import { ALL_KINDS, KINDS, KIND_VARIABLE } from "./kinds.js";

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/** Any CSS colour as [red, green, blue, alpha], 0 to 255. */
export function channels(colour) {
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = "#808080";
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

const packed = ([red, green, blue]) => ((blue << 16) | (green << 8) | red) >>> 0;
const darker = ([red, green, blue], by) => [red * by, green * by, blue * by].map(Math.round);

/** Relative luminance, 0 to 1, by the sRGB weights. */
function luminance([red, green, blue]) {
  const linear = [red, green, blue].map((value) => ((value / 255) <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

export class Colours {
  constructor(element = document.documentElement) {
    this.element = element;
    this.version = 0;
    this.read();
  }

  read() {
    const style = getComputedStyle(this.element);
    const variable = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
    this.background = variable("--bg", "#0b0e13");
    this.card = variable("--card", "#12161d");
    this.line = variable("--line", "#252b36");
    this.text = variable("--text", "#e8ecf2");
    this.muted = variable("--muted", "#8a94a5");
    this.accent = variable("--accent", "#5b9dff");
    this.ok = variable("--ok", "#3ecf8e");
    this.warn = variable("--warn", "#f0a040");
    this.bad = variable("--bad", "#f06a6a");
    this.lane = variable("--lane", "#161c26");
    this.thinLane = variable("--lane-2", "#131922");
    this.raised = variable("--raised", this.card);
    this.strongLine = variable("--line-strong", this.line);
    this.hatch = variable("--hatch", this.bad);
    this.hatchGround = variable("--hatch-bg", "transparent");
    this.kind = new Array(KINDS).fill(this.muted);
    this.onKind = new Array(KINDS).fill("#000");
    this.rgb = new Uint32Array(KINDS);
    this.edge = new Uint32Array(KINDS);
    for (const kind of ALL_KINDS) this.#readKind(kind, variable(KIND_VARIABLE[kind], this.muted));
    this.version++;
  }

  #readKind(kind, colour) {
    const rgb = channels(colour);
    this.kind[kind] = colour;
    this.rgb[kind] = packed(rgb);
    this.edge[kind] = packed(darker(rgb, 0.62));
    this.onKind[kind] = luminance(rgb) > 0.2 ? "#0b0e13" : "#ffffff";
  }

  /** Calls back after each change of theme. */
  watch(changed) {
    document.addEventListener("themechange", () => {
      this.read();
      changed();
    });
  }
}
