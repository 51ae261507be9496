package console

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// rowsPerPage, decisionsPerPage and shownInputs are the largest numbers of each on one page.
const rowsPerPage, decisionsPerPage, shownInputs = 100, 20, 200

// site draws the pages from the read model.
type site struct {
	*handler
	assets    *assetStore
	templates *template.Template
	glossary  []chapter
}

// mountPages adds the pages and their assets to mux. A template that does not parse is a
// programmer's error, and panics.
func mountPages(mux *http.ServeMux, h *handler) {
	s := &site{handler: h, assets: newAssets(), glossary: glossary()}
	s.templates = template.Must(template.New("").Funcs(s.words()).ParseFS(assets, "web/*.html"))
	mux.HandleFunc("GET /{$}", s.drawOverview)
	mux.HandleFunc("GET /workloads/{name}", s.drawWorkload)
	mux.HandleFunc("GET /hosts", s.drawHosts)
	mux.HandleFunc("GET /hosts/{name}", s.drawHost)
	mux.HandleFunc("GET /pipeline", s.drawPipeline)
	mux.HandleFunc("GET /fairness", s.drawFairness)
	mux.HandleFunc("GET /what-if", s.drawWhatIf)
	mux.HandleFunc("GET /report", s.drawReport)
	mux.HandleFunc("GET /plan", s.drawPlan)
	mux.HandleFunc("GET /jobs", s.drawJobs)
	mux.HandleFunc("GET /batch", s.drawBatch)
	mux.HandleFunc("GET /glossary", s.drawGlossary)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		// Browsers request it when an answer is not a page.
		http.Redirect(w, r, s.assets.address("icon.svg"), http.StatusSeeOther)
	})
	mux.Handle("GET /web/{version}/{file...}", s.assets)
}

// frame has the common parts of all pages.
type frame struct {
	// Page names the page; Subject the workload that it is about, if any.
	Title, Page, Subject string
	// JSON is the URL of the page's data, for programs; Script is the module that keeps the page up
	// to date; API is the URL of the workload.
	JSON, Script, API string
	Now               time.Time
	// Charts says that the page has charts; Fair, HasJobs and HasBatch that there are pages on
	// fairness, best-effort jobs and speculative jobs.
	Charts, Fair, HasJobs, HasBatch bool
	// Between is the least time between two updates, in ms; 0: the default of pages.
	Between int
	// Reports says that there is a pool to report on.
	Reports bool
	// Asks says that what-if questions are answered.
	Asks   bool
	Paused bool
	// NotReady has the reason of each part that is not ready, by the part's name.
	NotReady map[string]string
	// Unmet lists the settings that are not in force on a host.
	Unmet []view.UnmetOn
	// query is the query of the URL, which says by what tables are sorted.
	query url.Values
}

func (s *site) frame(r *http.Request, page, title, json string) frame {
	f := frame{Page: page, Title: title + " · trimtab", JSON: json, Script: "page.js", Now: time.Now(), query: r.URL.Query()}
	_, f.Fair = s.view.Audited()
	f.HasJobs = s.jobsNow() != nil || s.view.HasColocations(f.Now)
	f.HasBatch = s.view.HasBatch()
	f.Reports = s.view.Pool() != ""
	f.Asks = s.options.WhatIf != nil && s.view.Pool() != ""
	f.Unmet = s.view.Unmet(f.Now)
	if s.options.Ready != nil {
		f.NotReady = s.options.Ready()
	}
	return f
}

// Modules lists the files that the script imports, so that browsers ask for all at once.
func (f *frame) Modules() []string {
	out := []string{"live.js", "morph.js", "times.js", "copy.js"}
	if f.Charts {
		return append(out, "charts.js", "format.js", "table.js", "vendor/uplot/uPlot.esm.js")
	}
	return append(out, "filter.js")
}

// render draws a page.
func (s *site) render(w http.ResponseWriter, code int, name string, data any) {
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "trimtab: draw page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	// A client that went away is not our error.
	_, _ = b.WriteTo(w)
}

// link is one of a set of links; On says that the page is at it.
type link struct {
	Text, Href string
	On         bool
}

// overview is the data of overview.html.
type overview struct {
	Frame frame
	view.Status
	Query string
	// All counts all workloads by severity, without the filter.
	All            map[string]int
	Chips          []link
	First, Last    int
	Previous, Next string
	CapacityBar    bar
	longest        float64
	trends         map[string]view.Trend
}

func (s *site) drawOverview(w http.ResponseWriter, r *http.Request) {
	f, ok := pageFilter(w, r)
	if !ok {
		return
	}
	query, now := f.Query, time.Now()
	o := overview{Query: query, Status: s.view.Page(now, f)}
	s.led(r.Context(), &o.Status)
	o.All = o.Counts
	if query != "" {
		o.All = s.view.Page(now, view.Filter{Limit: 1}).Counts
	}
	o.Frame = s.frame(r, "overview", overviewTitle(&o), "/api/v1/status?"+listQuery(f, o.Offset))
	o.Frame.Paused = o.Paused
	o.First, o.Last, o.Previous, o.Next = pager("/", f, o.Offset, len(o.Workloads), o.Total)
	o.trends = s.view.Trends(o.Workloads, now)
	o.Chips = chips("/", f, []chip{
		{"in trouble", "state:bad"}, {"to watch", "state:note"}, {"held", "held"},
		{"act", "mode:act"}, {"recommend", "mode:recommend"}, {"off", "mode:off"},
		{"latency-critical", "class:latency-critical"}, {"best-effort", "class:best-effort"},
	})
	o.CapacityBar = capacityBar(&o.Status)
	o.longest = longest(o.Workloads)
	s.render(w, http.StatusOK, "overview.html", &o)
}

// Spark is the path of a workload's performance over the last hour.
func (o *overview) Spark(r view.Row) string { return spark(o.trends[r.Name].Performance, 1) }

// LoadSpark draws the workload's load.
func (o *overview) LoadSpark(r view.Row) string { return spark(o.trends[r.Name].Load, 0) }

// AllocationSpark draws the workload's allocation.
func (o *overview) AllocationSpark(r view.Row) string { return spark(o.trends[r.Name].Allocation, 0) }

// overviewTitle has the number of workloads in trouble, for the browser's tab.
func overviewTitle(o *overview) string {
	title := "Workloads"
	if o.Capacity > 0 {
		title = "Pool " + o.Pool
	}
	if n := o.All["bad"]; n > 0 {
		title = "(" + strconv.Itoa(n) + ") " + title
	}
	return title
}

// listQuery is the address of a part of a list.
func listQuery(f view.Filter, offset int) string {
	q := url.Values{}
	if f.Query != "" {
		q.Set("q", f.Query)
	}
	if f.Sort != "" {
		q.Set("sort", f.Sort)
	}
	if offset > 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
	return q.Encode()
}
