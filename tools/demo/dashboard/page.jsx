// SPDX-License-Identifier: GPL-2.0-only
// Draws ctl/metrics/mgpu-dashboard.json with Grafana's own components.
//
// @grafana/ui has the panels' frame and what is drawn in it, @grafana/data the units, thresholds,
// transformations, names and reductions.  This file repeats what only Grafana's server has: the
// defaults of its panels, their places, and how its data source for Prometheus reads an answer.

import React from "react";
import { createRoot } from "react-dom/client";
import {
    FieldType, ThemeContext, applyFieldOverrides, applyNullInsertThreshold, createTheme, dateTime,
    getDisplayValueAlignmentFactors, getFieldDisplayValues, standardFieldConfigEditorRegistry,
    standardTransformers, standardTransformersRegistry, toDataFrame, transformDataFrame,
} from "@grafana/data";
import { BigValue, GlobalStyles, Icon, PanelChrome, TimeSeries, VizRepeater } from "@grafana/ui";

// Grafana's grid: 24 columns, and rows of this height in pixels, with this gap in it.
const COLUMNS = 24;
const ROW = 38;
const GAP = 8;

// ---- Grafana's defaults, which a dashboard's file leaves out ----

const THRESHOLDS = {
    mode: "absolute",
    steps: [{ color: "green", value: null }, { color: "red", value: 80 }],
};
const DEFAULTS = {
    stat: {
        options: {
            graphMode: "area", colorMode: "value", justifyMode: "auto", textMode: "auto",
            orientation: "auto",
            reduceOptions: { values: false, calcs: ["lastNotNull"], fields: "" },
        },
        defaults: { color: { mode: "thresholds" }, thresholds: THRESHOLDS },
        custom: {},
    },
    timeseries: {
        options: {
            legend: { displayMode: "list", placement: "bottom", calcs: [], showLegend: true },
        },
        defaults: { color: { mode: "palette-classic" }, thresholds: THRESHOLDS },
        custom: {
            drawStyle: "line", lineInterpolation: "linear", lineWidth: 1, fillOpacity: 0,
            gradientMode: "none", spanNulls: false, showPoints: "auto", pointSize: 5,
            stacking: { mode: "none", group: "A" }, axisPlacement: "auto", axisLabel: "",
            axisColorMode: "text", axisBorderShow: false, axisCenteredZero: false,
            scaleDistribution: { type: "linear" }, barAlignment: 0, barWidthFactor: 0.6,
            hideFrom: { tooltip: false, viz: false, legend: false },
            thresholdsStyle: { mode: "off" },
        },
    },
};

// The properties that a dashboard's file may set.
const STANDARD = ["unit", "min", "max", "decimals", "displayName", "noValue", "color", "mappings",
    "thresholds"];
const CUSTOM = [...Object.keys(DEFAULTS.timeseries.custom), "axisSoftMin", "axisSoftMax",
    "lineStyle"];

// JSON has no -Infinity, where the first step of thresholds begins.
function read(path, value) {
    if (path !== "thresholds" || !value)
        return value;
    return { ...value, steps: value.steps.map(s => ({ ...s, value: s.value ?? -Infinity })) };
}

standardFieldConfigEditorRegistry.setInit(() => [
    ...STANDARD.map(path => [path, false]), ...CUSTOM.map(path => [path, true]),
].map(([path, isCustom]) => ({
    id: isCustom ? `custom.${path}` : path, path, name: path, isCustom,
    process: value => read(path, value), shouldApply: () => true, settings: {},
})));
standardTransformersRegistry.setInit(() => Object.values(standardTransformers)
    .filter(({ id }, i, all) => all.findIndex(other => other.id === id) === i)
    .map(transformer => ({
        id: transformer.id, name: transformer.name, transformation: async () => transformer,
    })));

// ---- answers ----

// A legend as the data source makes it: a label that is absent is empty.
function nameOf(labels, format) {
    if (format)
        return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => labels[label] ?? "");
    const { __name__: name = "", ...rest } = labels;
    const list = Object.entries(rest).map(([key, value]) => `${key}="${value}"`);

    return name + (list.length ? `{${list.join(", ")}}` : "");
}

function frameOf({ metric, values }, { refId, legendFormat }, step) {
    const name = nameOf(metric, legendFormat);
    const numbers = values.map(([, value]) => Number(value));

    return toDataFrame({
        refId,
        fields: [{
            name: "Time", type: FieldType.time, config: { interval: step * 1000 },
            values: values.map(([seconds]) => seconds * 1000),
        }, {
            name: "Value", type: FieldType.number, labels: metric,
            config: name ? { displayNameFromDS: name } : {},
            values: numbers.map(number => Number.isFinite(number) ? number : null),
        }],
    });
}

function framesOf({ id, targets = [], transformations = [] }, { answers, step }) {
    const frames = targets.flatMap(target =>
        answers[id][target.refId].map(series => frameOf(series, target, step)));

    return new Promise((next, error) => {
        transformDataFrame(transformations, frames).subscribe({ next, error });
    });
}

// ---- panels ----

const theme = createTheme({ colors: { mode: "light" } });

function configOf({ type, fieldConfig: { defaults: own, overrides } }) {
    const { defaults, custom } = DEFAULTS[type];

    return { defaults: { ...defaults, ...own, custom: { ...custom, ...own.custom } }, overrides };
}

function Words({ children }) {
    const { secondary } = theme.colors.text;

    return <div style={{ height: "100%", display: "grid", placeItems: "center", color: secondary }}>
        {children}
    </div>;
}

function Stat({ panel, frames, fieldConfig, width, height }) {
    const options = { ...DEFAULTS.stat.options, ...panel.options };
    const { colorMode, graphMode, justifyMode, textMode, orientation, reduceOptions } = options;

    return <VizRepeater
        getValues={() => getFieldDisplayValues({
            fieldConfig, theme, data: frames, timeZone: "utc", reduceOptions,
            replaceVariables: text => text, sparkline: graphMode !== "none",
        })}
        getAlignmentFactors={getDisplayValueAlignmentFactors}
        renderValue={({ value: { display, sparkline }, ...place }) => <BigValue
            {...{ value: display, sparkline, theme, colorMode, graphMode, justifyMode, textMode }}
            count={place.count} alignmentFactors={place.alignmentFactors}
            width={place.width} height={place.height} />}
        {...{ width, height, orientation }} source={frames} itemSpacing={3} renderCounter={0}
        autoGrid />;
}

function Plot({ panel, frames, range, width, height }) {
    const legend = { ...DEFAULTS.timeseries.options.legend, ...panel.options.legend };
    // The panel does this before it gives frames to the component: no line crosses a gap.
    const gaps = frames.map(frame => applyNullInsertThreshold({
        frame, refFieldPseudoMin: range.from.valueOf(), refFieldPseudoMax: range.to.valueOf(),
    }));

    return <TimeSeries {...{ legend, width, height }} frames={gaps} structureRev={1}
        timeRange={range} timeZone="utc" />;
}

function Content({ panel, range, width, height }) {
    if (!DEFAULTS[panel.type])
        return <Words>{`Not drawn: Grafana's library has no ${panel.type}.`}</Words>;
    const fieldConfig = configOf(panel);
    const frames = applyFieldOverrides({
        data: panel.frames, fieldConfig, theme, timeZone: "utc", replaceVariables: text => text,
    });

    if (panel.type === "stat")
        return <Stat {...{ panel, frames, fieldConfig, width, height }} />;
    if (!frames.length)
        return <Words>No data</Words>;
    return <Plot {...{ panel, frames, range, width, height }} />;
}

// Tells the fault of a panel, which React would leave out.
class Watch extends React.Component {
    state = {};

    static getDerivedStateFromError(error) {
        return { error };
    }

    componentDidCatch(error) {
        window.faults.push(`${this.props.title}: ${error.message}`);
    }

    render() {
        return this.state.error ? null : this.props.children;
    }
}

function Panel({ panel, range, scale }) {
    const { x, y, w, h } = panel.gridPos;
    const place = { position: "absolute", left: x * scale + GAP, top: y * ROW + GAP };
    const { title, description } = panel;

    if (panel.type === "row") {
        const { fontSize, fontWeight } = theme.typography.h5;

        return <div style={{ ...place, display: "flex", alignItems: "center", gap: 4,
            height: h * ROW - GAP, fontSize, fontWeight }}>
            <Icon name="angle-down" />{title}
        </div>;
    }
    return <div style={place}>
        <PanelChrome {...{ title, description }} width={w * scale - GAP} height={h * ROW - GAP}>
            {(width, height) => <Watch title={title}>
                <Content {...{ panel, range, width, height }} />
            </Watch>}
        </PanelChrome>
    </div>;
}

function Dashboard({ page: { panels, start, end, width, height } }) {
    const scale = (width - GAP) / COLUMNS;
    const [from, to] = [dateTime(start * 1000), dateTime(end * 1000)];
    const range = { from, to, raw: { from, to } };
    const background = theme.colors.background.canvas;

    return <ThemeContext.Provider value={theme}>
        <div style={{ position: "relative", width, height, background }}>
            {panels.map(panel => <Panel key={panel.id} {...{ panel, range, scale }} />)}
        </div>
    </ThemeContext.Provider>;
}

function draw(id, node) {
    createRoot(document.getElementById(id)).render(node);
}

async function main() {
    const page = await (await fetch("page.json")).json();

    for (const panel of page.panels)
        panel.frames = await framesOf(panel, page);
    draw("styles", <ThemeContext.Provider value={theme}><GlobalStyles /></ThemeContext.Provider>);
    // Grafana measures texts, for which it must have its font; the styles name that.
    for (const weight of [400, 500]) {
        while (!(await document.fonts.load(`${weight} 12px Inter`)).length)
            await new Promise(done => setTimeout(done, 50));
    }
    draw("root", <Dashboard page={page} />);
}

window.faults = [];
window.addEventListener("error", ({ message }) => window.faults.push(message));
main().catch(error => window.faults.push(String(error)));
