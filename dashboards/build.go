package dashboards

import (
	"fmt"
	"strings"
)

// Generate returns the contents of every generated file by its path beneath
// dashboards/: the boards and the rules.
func Generate() map[string][]byte {
	files := map[string][]byte{"rules/trimtab.rules.yaml": rulesYAML()}
	for name, b := range map[string]*board{"overview.json": overview(), "workload.json": workload(), "pipeline.json": pipeline(), "colocate.json": colocate(), "speculate.json": speculate(), "contributions.json": contributions(), "gate.json": gate()} {
		files[name] = b.encode()
	}
	return files
}

// Placeholders in expressions: "@" inside braces is replaced by the labels of a site, "@w" also
// by the chosen workloads, and "@1" by the one of the dashboard Workload.
const (
	siteLabels = `namespace=~"$namespace"`
	manyLabels = siteLabels + `,workload=~"$workload"`
	oneLabels  = siteLabels + `,workload="$workload"`
)

// onBoard fills in the variables of a board.
func onBoard(expr string) string {
	return strings.NewReplacer("@w", manyLabels, "@1", oneLabels, "@", siteLabels).Replace(expr)
}

// inRule leaves the labels out.
func inRule(expr string) string {
	return strings.NewReplacer("{@w}", "", "{@1}", "", "{@}", "", "@w,", "", "@1,", "", "@,", "").Replace(expr)
}

// inOne narrows an expression to the one workload of the board.
func inOne(expr string) string { return strings.ReplaceAll(expr, "@w", "@1") }

// query is an expression with its legend.
type query struct {
	expr, legend string
}

// grid places panels from left to right and top to bottom, 24 columns wide.
type grid struct {
	panels     []panel
	x, y, high int
}

// row begins a row of the dashboard.
func (g *grid) row(title string) {
	g.feed()
	open, none := false, []panel{}
	g.panels = append(g.panels, panel{Type: "row", Title: title, Collapsed: &open, Panels: &none,
		GridPos: gridPos{1, 24, 0, g.y}, ID: len(g.panels) + 1})
	g.y++
}

func (g *grid) feed() {
	g.y, g.x, g.high = g.y+g.high, 0, 0
}

// picture describes a panel: what it shows, how large, and in which unit.
type picture struct {
	kind, title, about, unit string
	w, h                     int
	queries                  []query
	// change adds what only this kind, or this panel, has.
	change []func(*panel)
}

// add places one panel.
func (g *grid) add(p picture) {
	if g.x+p.w > 24 {
		g.feed()
	}
	out := panel{
		Type: p.kind, Title: p.title, Description: p.about, Datasource: pointer(chosen()), ID: len(g.panels) + 1,
		GridPos:     gridPos{p.h, p.w, g.x, g.y},
		FieldConfig: &fieldConfig{Defaults: defaults{Unit: p.unit}, Overrides: []override{}},
	}
	for i, q := range p.queries {
		out.Targets = append(out.Targets, target{
			Datasource: chosen(), EditorMode: "code", Expr: onBoard(q.expr), LegendFormat: q.legend, Format: "time_series",
			Instant: p.kind == "stat", Range: p.kind != "stat", RefID: string(rune('A' + i)),
		})
	}
	for _, change := range p.change {
		change(&out)
	}
	g.panels = append(g.panels, out)
	g.x += p.w
	g.high = max(g.high, p.h)
}

// stat adds the newest value in large letters.
func (g *grid) stat(w int, title, about, unit string, q query, change ...func(*panel)) {
	g.add(picture{kind: "stat", title: title, about: about, unit: unit, w: w, h: 4, queries: []query{q}, change: append([]func(*panel){statLooks}, change...)})
}

func statLooks(p *panel) {
	p.FieldConfig.Defaults.NoValue = "unknown"
	p.Options = object{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
		"wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
		"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
	}
}

// graph adds curves over time.
func (g *grid) graph(w int, title, about, unit string, queries []query, change ...func(*panel)) {
	g.add(picture{kind: "timeseries", title: title, about: about, unit: unit, w: w, h: 8, queries: queries, change: append([]func(*panel){graphLooks}, change...)})
}

func graphLooks(p *panel) {
	p.FieldConfig.Defaults.Custom = object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false}
	p.Options = object{
		"legend":  object{"calcs": []string{"lastNotNull", "max"}, "displayMode": "table", "placement": "bottom", "showLegend": true},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
}

// from0 starts the axis at 0, between0And1 also ends it at 1.
func from0(p *panel) { p.FieldConfig.Defaults.Min = number(0) }

func between0And1(p *panel) {
	from0(p)
	p.FieldConfig.Defaults.Max = number(1)
}

// stacked stacks the curves, except those with the named legends.
func stacked(except ...string) func(*panel) {
	return func(p *panel) {
		c := p.FieldConfig.Defaults.Custom
		c["stacking"] = object{"mode": "normal", "group": "A"}
		c["fillOpacity"] = 40
		for _, name := range except {
			set(name, property("custom.stacking", object{"mode": "none", "group": "B"}), property("custom.fillOpacity", 0),
				property("custom.lineWidth", 2))(p)
		}
	}
}

// bars draws events.
func bars(p *panel) {
	c := p.FieldConfig.Defaults.Custom
	c["drawStyle"], c["fillOpacity"] = "bars", 60
	c["stacking"] = object{"mode": "normal", "group": "A"}
}

// stairs draws values as steps.
func stairs(p *panel) { p.FieldConfig.Defaults.Custom["lineInterpolation"] = "stepAfter" }

// colored sets where a value turns from good to bad.
func colored(base string, steps ...step) func(*panel) {
	return func(p *panel) {
		p.FieldConfig.Defaults.Thresholds = &thresholds{"absolute", append([]step{{base, nil}}, steps...)}
		p.FieldConfig.Defaults.Color = object{"mode": "thresholds"}
	}
}

func at(value float64, color string) step { return step{color, &value} }

// words shows texts for numbers.
func words(of map[string]string) func(*panel) {
	options := object{}
	for value, text := range of {
		options[value] = object{"text": text}
	}
	return func(p *panel) {
		p.FieldConfig.Defaults.Mappings = []object{{"type": "value", "options": options}}
	}
}

// set overrides properties of the curve or column with that name.
func set(name string, properties ...object) func(*panel) {
	return func(p *panel) {
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{object{"id": "byName", "options": name}, properties})
	}
}

func property(id string, value any) object { return object{"id": id, "value": value} }

func number(v float64) *float64 { return &v }

func pointer(d datasource) *datasource { return &d }

// newBoard frames panels with the variables that all boards share.
func newBoard(name, title, about string, g *grid, more ...variable) *board {
	return &board{
		UID: "trimtab-" + name, Title: "trimtab / " + title, Description: about, Tags: []string{"trimtab"},
		SchemaVersion: schemaVersion, Editable: true, GraphTooltip: 1, Refresh: "10s", Timezone: "browser",
		Time: span{"now-1h", "now"}, Annotations: annotations{List: []annotation{}}, Panels: g.panels,
		Links: []object{{
			"title": "trimtab", "type": "dashboards", "tags": []string{"trimtab"}, "icon": "external link", "tooltip": "", "url": "",
			"asDropdown": false, "includeVars": true, "keepTime": true, "targetBlank": false,
		}},
		Templating: templating{append([]variable{
			{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1},
			// The label of a target that service discovery gives; where there
			// is none, "All" matches the series without it.
			labelValues("namespace", "Namespace", "label_values(trimtab_pool_capacity, namespace)", true),
		}, more...)},
	}
}

// labelValues is a variable with choices from a Prometheus query.
func labelValues(name, label, question string, many bool) variable {
	v := variable{
		Name: name, Label: label, Type: "query", Datasource: pointer(chosen()), Refresh: 2, Sort: 1,
		Query: object{"query": question, "refId": fmt.Sprintf("variable-%s", name)},
	}
	if many {
		v.AllValue, v.IncludeAll, v.Multi = ".*", true, true
		v.Current = &option{true, "All", "$__all"}
	}
	return v
}
