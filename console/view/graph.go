package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
)

// shownNodes bounds the components that a call graph draws.
const shownNodes = 40

// Positions of nodes in a call graph, in units of the drawing: columns are layers.
const (
	nodeWidth, nodeHeight = 176, 44
	columnStep, rowStep   = 232, 60
	graphMargin           = 12
	nameRunes             = 22
)

// CallGraph is a drawing of which component calls which. The colour of a component
// shows what it adds to the tail latency; a mark, that it needs more of a resource.
type CallGraph struct {
	Width, Height int
	Nodes         []Node
	Edges         []Edge
	// More counts the components that are left out.
	More int
	// Grew names the components that the tail grew in, the largest part first.
	Grew string
	// Short names the components that are workloads with too little for their need.
	Short string
	// Label describes the drawing for people who do not see it.
	Label string
}

// Node is one component on all hosts.
type Node struct {
	Component string
	// Name is Component, cut to what fits.
	Name string
	// Layer is the most calls on a way to it from where requests come in.
	Layer, X, Y int
	// Share is its part of all contributions, Heat the same in tenths, 0 to 10.
	Share string
	Heat  int
	// Grew is its share of the growth of the tail, formatted; "": none.
	Grew string
	// Short names the resource of which the component, if it is a workload of its own, needs more;
	// "": none, as far as is known.
	Short string
	// Title is the complete description.
	Title string

	share, grew, sojourn float64
	known                bool
}

// Size is the size of a node.
type Size struct{ Width, Height int }

// Size is the same for all.
func (n Node) Size() Size { return Size{nodeWidth, nodeHeight} }

// Inner is the size of its box, which leaves 1.5 on each side for the outline.
func (n Node) Inner() Size { return Size{nodeWidth - 3, nodeHeight - 3} }

// Edge is an arrow from a component to one that it calls.
type Edge struct {
	From, To string
	// Path is the arrow's path in SVG.
	Path  string
	Title string
	// Back says that the call closes a cycle.
	Back bool
}

// CallGraph draws the call graph of c, and marks components that are workloads and need more of a
// resource now; nil: c has no calls between components.
func (v *Model) CallGraph(c *colocation.Contributions, now time.Time) *CallGraph {
	v.mu.Lock()
	defer v.mu.Unlock()
	return graphOf(c, func(component string) string {
		if s := v.workloads.all[component]; s != nil {
			r := v.at(now).row(s)
			return r.shortage(v.config.Resource)
		}
		return ""
	})
}

// shortage says why the workload has too little: it misses its SLO, or has less than the least that
// would meet it; "" if neither is known.
func (r *Row) shortage(resource string) string {
	has := cmp.Or(r.Total, r.Allocation)
	switch {
	case r.Code == codeMisses:
		return "misses its SLO"
	case r.Demand != nil && has != nil && has.Less(trimtab.Units(*r.Demand*(1-shortBy))):
		return "has " + Number(has.Value) + " of the " + Number(*r.Demand) + " " + Unit(resource) + " that its SLO needs"
	}
	return ""
}

// shortBy is the part of its need by which a workload must have too little to be called short.
const shortBy = 0.02

// graphOf draws the call graph; short says what a component is short of, "": nothing.
func graphOf(c *colocation.Contributions, short func(component string) string) *CallGraph {
	calls := slices.DeleteFunc(slices.Clone(c.Calls), func(x colocation.Call) bool { return x.From == x.To })
	if len(calls) == 0 {
		return nil
	}
	layers, back := layersOf(calls)
	all := nodesOf(c, calls)
	for _, n := range all {
		n.Layer = layers[n.Component]
		if n.Short = short(n.Component); n.Short != "" {
			n.Title += "; short: " + n.Short
		}
	}
	slices.SortFunc(all, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(b.grew, a.grew), cmp.Compare(b.share, a.share), cmp.Compare(b.sojourn, a.sojourn), cmp.Compare(a.Component, b.Component))
	})
	g := &CallGraph{More: max(0, len(all)-shownNodes)}
	shown := all[:len(all)-g.More]
	g.say(shown)
	byName := map[string]*Node{}
	for _, n := range shown {
		byName[n.Component] = n
	}
	g.place(shown, byName, calls)
	for _, n := range shown {
		g.Nodes = append(g.Nodes, *n)
	}
	for i, x := range calls {
		if from, to := byName[x.From], byName[x.To]; from != nil && to != nil {
			title := fmt.Sprintf("%s calls %s: %s calls/s", x.From, x.To, Number(x.Rate))
			g.Edges = append(g.Edges, Edge{From: x.From, To: x.To, Path: curveOf(from, to, back[i]), Title: title, Back: back[i]})
		}
	}
	return g
}

// layersOf gives each component the length of the longest path to it, and reports which calls close
// a cycle, which do not count. Calls are in order, and none is from a component to itself.
func layersOf(calls []colocation.Call) (layers map[string]int, back []bool) {
	out, called := map[string][]int{}, map[string]bool{}
	for i, c := range calls {
		out[c.From] = append(out[c.From], i)
		called[c.To] = true
	}
	back = make([]bool, len(calls))
	const open, done = 1, 2
	state := map[string]int{}
	var order []string // callees before their callers
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		for _, i := range out[name] {
			switch to := calls[i].To; state[to] {
			case open:
				back[i] = true
			case 0:
				visit(to)
			}
		}
		state[name] = done
		order = append(order, name)
	}
	// First from the components that requests enter, then into cycles without such a component.
	for _, entries := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(out)) {
			if state[name] == 0 && called[name] != entries {
				visit(name)
			}
		}
	}
	layers = map[string]int{}
	for _, name := range slices.Backward(order) {
		layers[name] = max(layers[name], 0)
		for _, i := range out[name] {
			if to := calls[i].To; !back[i] {
				layers[to] = max(layers[to], layers[name]+1)
			}
		}
	}
	return layers, back
}

// nodesOf returns all components that have a Servpod, or a call.
func nodesOf(c *colocation.Contributions, calls []colocation.Call) (all []*Node) {
	nodes := map[string]*Node{}
	of := func(component string) *Node {
		n := nodes[component]
		if n == nil {
			n = &Node{Component: component, Name: shorten(component)}
			nodes[component] = n
			all = append(all, n)
		}
		return n
	}
	sum := 0.0
	for i := range c.Servpods {
		s := &c.Servpods[i]
		n := of(s.Component)
		sum += max(0, s.Contribution)
		n.share, n.sojourn, n.known = n.share+max(0, s.Contribution), n.sojourn+s.Sojourn, true
	}
	for _, x := range calls {
		of(x.From)
		of(x.To)
	}
	if c.Growth != nil {
		for _, p := range c.Growth.Parts {
			of(p.Component).grew += p.Share
		}
	}
	for _, n := range all {
		n.words(sum)
	}
	return all
}

// words says what n adds, of the sum of all contributions.
func (n *Node) words(sum float64) {
	n.Share, n.Title = "not known yet", n.Component+": contribution not known yet"
	if n.known && sum > 0 && !math.IsInf(sum, 1) {
		n.share /= sum
		n.Share, n.Heat = Percent(n.share), int(math.Round(10*n.share))
		n.Title = n.Component + ": " + n.Share + " of all contributions"
	} else {
		n.share = 0
	}
	if n.known {
		n.Title += ", " + Time(n.sojourn) + " of a request"
	}
	if n.grew > 0 {
		n.Grew = Percent(min(1, n.grew))
		n.Title += ", " + n.Grew + " of what the tail grew by"
	}
}

func shorten(name string) string {
	if runes := []rune(name); len(runes) > nameRunes {
		return string(runes[:nameRunes-1]) + "…"
	}
	return name
}

// say describes the drawing in words. Nodes are ordered by importance.
func (g *CallGraph) say(nodes []*Node) {
	var grew, most, short []string
	for _, n := range nodes {
		if n.Short != "" {
			short = append(short, n.Component)
		}
		if n.Grew != "" {
			grew = append(grew, n.Component)
		}
		if len(most) < 3 && n.Heat > 0 {
			most = append(most, n.Component+" "+n.Share)
		}
	}
	g.Grew = strings.Join(grew[:min(len(grew), 3)], ", ")
	g.Label = "Call graph of " + Count(len(nodes)+g.More, "component")
	if len(most) > 0 {
		g.Label += "; of all contributions: " + strings.Join(most, ", ")
	}
	if g.Grew != "" {
		g.Label += "; the tail grew in " + g.Grew
	}
	if g.Short = strings.Join(short[:min(len(short), 3)], ", "); g.Short != "" {
		g.Label += "; short of what they need: " + g.Short
	}
}

// place sets X and Y: each layer with nodes is a column, and each node is near
// its callers.
func (g *CallGraph) place(nodes []*Node, byName map[string]*Node, calls []colocation.Call) {
	columns := map[int][]*Node{}
	for _, n := range nodes {
		columns[n.Layer] = append(columns[n.Layer], n)
	}
	for x, layer := range slices.Sorted(maps.Keys(columns)) {
		column := columns[layer]
		near := map[*Node]float64{}
		for _, n := range column {
			near[n] = nearOf(n, byName, calls)
		}
		slices.SortFunc(column, func(a, b *Node) int {
			return cmp.Or(cmp.Compare(near[a], near[b]), cmp.Compare(a.Component, b.Component))
		})
		for y, n := range column {
			n.X, n.Y = graphMargin+x*columnStep, graphMargin+y*rowStep
			g.Width, g.Height = max(g.Width, n.X+nodeWidth+graphMargin), max(g.Height, n.Y+nodeHeight+graphMargin)
		}
	}
}

// nearOf returns the mean vertical position of the callers of n in the columns before it.
func nearOf(n *Node, byName map[string]*Node, calls []colocation.Call) float64 {
	sum, callers := 0.0, 0.0
	for _, x := range calls {
		if from := byName[x.From]; x.To == n.Component && from != nil && from.Layer < n.Layer {
			sum, callers = sum+float64(from.Y), callers+1
		}
	}
	return sum / max(1, callers)
}

// curveOf leads from the right of the caller to the left of the callee; one that
// closes a cycle from the left to the right, lower down.
func curveOf(from, to *Node, back bool) string {
	x1, x2, y1, y2 := from.X+nodeWidth, to.X, from.Y+nodeHeight/2, to.Y+nodeHeight/2
	bend := (columnStep - nodeWidth) / 2
	if back {
		x1, x2, y1, y2, bend = from.X, to.X+nodeWidth, y1+nodeHeight/3, y2+nodeHeight/3, -bend
	}
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
}
