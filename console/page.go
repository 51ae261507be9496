package console

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

//go:embed page.html workload.html style.css
var assets embed.FS

// shownHistory is how many earlier decisions the page of a workload lists.
const shownHistory = 20

// pages parses the embedded templates. They are part of the program: one that
// does not parse is a programmer's error, and panics.
func pages() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"number":      Number,
		"optional":    Optional,
		"amount":      Amount,
		"performance": Performance,
		"quantity":    Quantity,
		"latency":     Latency,
		"age":         Age,
		"clock":       Clock,
		"unit":        Unit,
		"since":       func(t, now time.Time) string { return Age(trimtab.SecondsOf(now.Sub(t))) },
		"state":       stateClass,
		"share":       share,
		"move":        move,
		"bare":        func(workload, summary string) string { return strings.TrimPrefix(summary, workload+": ") },
	}).ParseFS(assets, "*.html"))
}

// overview is what page.html shows.
type overview struct {
	Status
	// NotReady is what is not ready, by part, with the reason.
	NotReady map[string]string
	// Bad, Note and OK count workloads by what they ask of a person.
	Bad, Note, OK int
}

// Given is what is given out, for the bar.
func (o *overview) Given() *trimtab.Amount { return &o.Allocated }

func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	o := overview{Status: h.view.Status(time.Now())}
	if h.options.Ready != nil {
		o.NotReady = h.options.Ready()
	}
	for i := range o.Workloads {
		switch stateClass(o.Workloads[i].State) {
		case "bad":
			o.Bad++
		case "note":
			o.Note++
		case "ok":
			o.OK++
		}
	}
	h.render(w, "page.html", &o)
}

// detail is what workload.html shows.
type detail struct {
	Explanation
	Now            time.Time
	Curve, History *chart
	Earlier        []*Decision
}

// Expected are the bounds of what is expected at the value that was set.
func (d *detail) Expected() (out []*float64) {
	for i := range d.Bounds {
		out = append(out, &d.Bounds[i])
	}
	return out
}

func (h *handler) workload(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	e, ok := h.view.Explain(r.PathValue("name"), keptDecisions, now)
	if !ok {
		http.NotFound(w, r)
		return
	}
	d := detail{Explanation: e, Now: now, Earlier: e.History[:min(len(e.History), shownHistory)], Curve: curveChart(&e)}
	oldestFirst := slices.Clone(e.History)
	slices.Reverse(oldestFirst)
	if e.latest != nil {
		oldestFirst = append(oldestFirst, e.latest)
	}
	d.History = historyChart(&e, oldestFirst, now)
	h.render(w, "workload.html", &d)
}

func style(w http.ResponseWriter, _ *http.Request) {
	b, err := assets.ReadFile("style.css")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	// A client that went away is not our error.
	_, _ = w.Write(b)
}

func (h *handler) render(w http.ResponseWriter, name string, data any) {
	var b strings.Builder
	if err := h.pages.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "trimtab: draw page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, b.String())
}

// share is the width of an allocation's bar in percent of the capacity.
func share(a *trimtab.Amount, capacity float64) string {
	if a == nil || capacity <= 0 {
		return "0"
	}
	if a.Unlimited {
		return "100"
	}
	return fmt.Sprintf("%.1f", min(100, 100*a.Value/capacity))
}

// move is a decision in a few signs: "▲ 0.4 → 0.5".
func move(a trimtab.Action) string {
	sign := "▲"
	if a.Set.Less(a.Expect) {
		sign = "▼"
	}
	return sign + " " + Amount(a.Expect) + " → " + Amount(a.Set)
}
