package console

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// figure is one chart, drawn by charts.js. One that is Optional is hidden while it has no data.
type figure struct {
	ID, Title, About string
	Optional         bool
}

// detail is the data of workload.html.
type detail struct {
	Frame frame
	view.Explanation
	Figures []figure
	Ranges  []link
	Decided []view.Advice
	Kept    int // decisions
	// Paged says that older decisions are shown; Newest and Older are the addresses of the
	// neighbouring pages.
	Paged         bool
	Newest, Older string
	Patch         *view.Patch
	Calls         *view.CallGraph
}

func (s *site) drawWorkload(w http.ResponseWriter, r *http.Request) {
	name, now := nameOf(r), time.Now()
	e, ok := s.view.Explain(name, 0, now)
	if !ok {
		s.missing(w, r, name)
		return
	}
	query := r.URL.Query()
	decided, older, kept, err := s.view.Advices(name, query.Get("before"), decisionsPerPage, now)
	if errors.Is(err, trimtab.ErrInvalid) {
		http.Error(w, "trimtab: "+err.Error(), http.StatusBadRequest)
		return
	}
	d := detail{Explanation: e, Decided: decided, Kept: kept, Paged: query.Get("before") != ""}
	d.Frame = s.frame(r, "workload", name, address("/api/v1/workloads/", name))
	d.Frame.Subject, d.Frame.API, d.Frame.Script, d.Frame.Charts = name, d.Frame.JSON, "workload.js", true
	d.Ranges = ranges(query)
	d.Newest = "?" + with(query, "before", "").Encode()
	if older != "" {
		d.Older = "?" + with(query, "before", older).Encode()
	}
	d.Figures = figures(&e)
	if e.Contributions != nil {
		d.Calls = s.view.CallGraph(e.Contributions, now)
	}
	if p, advised, ok := s.view.Patch(name); ok && advised {
		d.Patch = &p
	}
	s.render(w, http.StatusOK, "workload.html", &d)
}

// address is the address of a page, or of the API, for a workload or host.
func address(prefix, name string) string {
	segment, query := view.Path(name)
	if query != "" {
		query = "?" + query
	}
	return prefix + segment + query
}

func figures(e *view.Explanation) []figure {
	learnt := "performance over " + view.Unit(e.Resource)
	if e.Share {
		learnt = "requests within the SLO over " + view.Unit(e.Resource)
	}
	if e.Curve != nil {
		learnt += ", at " + view.Number(e.Curve.Load) + " requests/s, with its " + view.Percent(e.Curve.Level) + " band"
	}
	load, latency := figure{"load", "Load", "measured, and the forecast's upper bound", false}, figure{"latency", "Latency", "p50, p95 and p99 of the requests seen", false}
	refused := figure{"refused", "Refused", "requests/s that gates refused, by class", true}
	if e.Draft != nil {
		return []figure{latency, load, refused} // a workload that is not configured has no curve and no allocation
	}
	if e.MemoryAlone && e.SLO == "" {
		return nil
	}
	return []figure{
		{"curve", "Learnt curve", learnt, false},
		{"performance", "Performance", "what was measured, and the SLO", false},
		{"allocation", "Allocation", view.Unit(e.Resource) + " given, and used where that is measured", false},
		load, latency, refused,
	}
}

// ranges are the spans of time that the charts may show.
func ranges(query url.Values) []link {
	chosen := query.Get("range")
	if chosen == "" {
		chosen = "15m"
	}
	zoomed := query.Has("from")
	query = with(with(query, "from", ""), "to", "")
	var out []link
	for _, r := range []string{"15m", "1h", "6h", "24h", "all"} {
		out = append(out, link{r, "?" + with(query, "range", r).Encode(), r == chosen && !zoomed})
	}
	return out
}

// with returns query with one value set, or without it when value is empty.
func with(query url.Values, key, value string) url.Values {
	out := url.Values{}
	for k, v := range query {
		if k != key {
			out[k] = v
		}
	}
	if value != "" {
		out.Set(key, value)
	}
	return out
}

// Missed reports whether the performance is under the SLO.
func (d *detail) Missed() bool {
	return d.SLOTarget != nil && d.Performance != nil && *d.Performance < *d.SLOTarget
}

// Expected is the band at the value that was set.
func (d *detail) Expected() string {
	if len(d.Explanation.Bounds) != 2 {
		return ""
	}
	return between(d.Explanation.Bounds[0], d.Explanation.Bounds[1], d.Share)
}

// Bounded is the range in which the knob may be set.
func (d *detail) Bounded() string {
	if d.Least == nil || d.Most == nil || *d.Most == 0 {
		return ""
	}
	of := func(v float64) string { return view.AmountIn(trimtab.Units(v), d.Resource) }
	return of(*d.Least) + " to " + of(*d.Most)
}

// EachMoved describes the newest decision for each of several instances.
func (d *detail) EachMoved() string { return view.Each(d.Moves, d.Changed) }

// ShownKnobs are the first of the knobs, HiddenKnobs counts the others.
func (d *detail) ShownKnobs() []view.Knob {
	knobs, _ := d.Frame.Sorted("instances", d.Knobs).([]view.Knob)
	return knobs[:min(len(knobs), knobsPerPage)]
}

// HiddenKnobs returns how many knobs ShownKnobs leaves out.
func (d *detail) HiddenKnobs() int { return len(d.Knobs) - len(d.ShownKnobs()) + d.Omitted }

// missing answers 404 for a workload that is neither configured nor seen.
func (s *site) missing(w http.ResponseWriter, r *http.Request, name string) {
	f := s.frame(r, "missing", name, "/api/v1/status")
	f.Subject = name
	s.render(w, http.StatusNotFound, "missing.html", &f)
}
