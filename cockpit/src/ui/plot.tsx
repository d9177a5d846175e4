/* SPDX-License-Identifier: MIT */
/** Two plain plots in SVG: lines over the last minutes, and stacked bars. */

/** Which colour is what. */
export function Legend({ entries }: { entries: readonly { name: string; color: string }[] }) {
    return (
        <ul className="vgpu-legend">
            {entries.map(({ name, color }) => (
                <li key={name}><span className="vgpu-swatch" style={{ backgroundColor: color }} />{name}</li>
            ))}
        </ul>
    );
}

/** A line of a plot. null: not known at that moment. */
export interface Series {
    name: string;
    color: string;
    points: readonly { at: number; value: number | null }[];
}

const WIDTH = 600;
const HEIGHT = 140;

/** The path of a line, which has gaps where nothing is known. */
function linePath(points: Series["points"], from: number, span: number, top: number): string {
    let pen = "M";

    return points.map(({ at, value }) => {
        if (value === null) {
            pen = "M";
            return "";
        }
        const x = WIDTH * (at - from) / span;
        const y = HEIGHT * (1 - Math.min(value / top, 1));
        const step = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
        pen = "L";
        return step;
    }).join("");
}

interface LinesProps {
    /** For screen readers: what is plotted, and how it is now. */
    label: string;
    series: readonly Series[];
    /** The value at the upper edge. */
    top: number;
    words: (value: number) => string;
    /** How much time is shown, milliseconds, and its end. */
    span: number;
    end: number;
}

export function LinePlot({ label, series, top, words, span, end }: LinesProps) {
    return (
        <div className="vgpu-plot">
            <div className="vgpu-plot-scale" aria-hidden="true">
                <span>{words(top)}</span><span>{words(top / 2)}</span><span>{words(0)}</span>
            </div>
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
                {[0, 0.5, 1].map(y => (
                    <line key={y} className="vgpu-plot-grid" x1="0" x2={WIDTH} y1={y * HEIGHT} y2={y * HEIGHT} />
                ))}
                {series.map(({ name, color, points }) => (
                    <path key={name} className="vgpu-plot-line" style={{ stroke: color }}
                          d={linePath(points, end - span, span, top)} />
                ))}
            </svg>
            <div className="vgpu-plot-time" aria-hidden="true">
                <span>{Math.round(span / 60000)} minutes ago</span><span>now</span>
            </div>
        </div>
    );
}

/** One bar: its parts from below. */
export interface Bar {
    name: string;
    parts: readonly { name: string; color: string; value: number }[];
}

interface BarsProps {
    label: string;
    bars: readonly Bar[];
    words: (value: number) => string;
    chosen: string;
    choose: (name: string) => void;
}

export function BarPlot({ label, bars, words, chosen, choose }: BarsProps) {
    const sum = (bar: Bar) => bar.parts.reduce((all, { value }) => all + value, 0);
    const top = Math.max(...bars.map(sum)) || 1;

    return (
        <div className="vgpu-bars" role="group" aria-label={label}>
            {bars.map(bar => (
                <button key={bar.name} type="button" className="vgpu-bars-bar" aria-pressed={bar.name === chosen}
                        onClick={() => choose(bar.name)}>
                    <span className="vgpu-bars-value">{words(sum(bar))}</span>
                    <span className="vgpu-bars-stack">
                        {bar.parts.map(({ name, color, value }) => (
                            <span key={name} title={`${name}: ${words(value)}`}
                                  style={{ height: `${100 * value / top}%`, backgroundColor: color }} />
                        ))}
                    </span>
                    <span>{bar.name}</span>
                </button>
            ))}
        </div>
    );
}
