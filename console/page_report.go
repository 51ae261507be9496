package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// reportPage is the data of report.html.
type reportPage struct {
	Frame frame
	view.Document
	Ranges []link
	Query  string
	Since  string
	Parts  []part
}

// part is a section of the report; it shows only the first of many rows.
type part struct {
	view.Section
	Heads []column
	// Matching rows there are, of which All has the address where not all are here.
	Matching int
	All      string
}

// reportSince is the period of a report without another.
const reportSince = "7d"

// rowsFirst is the number of rows of a table that a page shows at first: a browser takes long to
// lay out thousands.
const rowsFirst = 50

// report answers GET /api/v1/report?since=7d.
func (h *handler) report(r *http.Request) (any, error) {
	now := time.Now()
	since, err := sinceOf(r.URL.Query().Get("since"), now)
	if err != nil {
		return nil, err
	}
	return h.view.Report(since, now), nil
}

func (s *site) drawReport(w http.ResponseWriter, r *http.Request) {
	chosen, now := r.URL.Query().Get("since"), time.Now()
	if chosen == "" {
		chosen = reportSince
	}
	since, err := sinceOf(chosen, now)
	if err != nil {
		http.Error(w, "trimtab: "+err.Error(), http.StatusBadRequest)
		return
	}
	all := s.view.Report(since, now)
	slices.SortStableFunc(all.Workloads, func(a, b view.WorthOf) int { return cmp.Compare(b.Minutes-b.SLOMinutes, a.Minutes-a.SLOMinutes) })
	p := reportPage{Frame: s.frame(r, "report", "Report", "/api/v1/report?"+url.Values{"since": {chosen}}.Encode()), Document: all.Document(), Since: chosen}
	p.Frame.Between = 60_000 // the report reads the whole history
	p.Query = strings.TrimSpace(fmt.Sprintf("%.200s", r.URL.Query().Get("q")))
	for _, since := range []string{"1h", "24h", "7d"} {
		p.Ranges = append(p.Ranges, link{since, "?" + with(r.URL.Query(), "since", since).Encode(), since == chosen})
	}
	for i, section := range p.Sections {
		p.Parts = append(p.Parts, p.part(fmt.Sprintf("t%d", i), section, r.URL.Query()))
	}
	s.render(w, http.StatusOK, "report.html", &p)
}

// part is a section as the page shows it: the rows of matching workloads, sorted as the query
// asks.
func (p *reportPage) part(key string, s view.Section, asked url.Values) part {
	out := part{Section: s}
	for i, label := range s.Head {
		out.Heads = append(out.Heads, p.Frame.Column(fmt.Sprintf("%s.%d", key, i), label))
	}
	rows := s.Rows
	if len(s.Head) > 0 && s.Head[0] == "Workload" && p.Query != "" {
		rows = nil
		for _, row := range s.Rows {
			if strings.Contains(strings.ToLower(row[0]), strings.ToLower(p.Query)) {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 && len(s.Rows) > 0 {
			out.Text = append(slices.Clone(out.Text), fmt.Sprintf("No workload here matches %s.", p.Query))
		}
	}
	by, down := strings.CutPrefix(p.Frame.Sort(), "-")
	if at, found := strings.CutPrefix(by, key+"."); found {
		if column, err := strconv.Atoi(at); err == nil && column >= 0 && column < len(s.Head) {
			rows = slices.Clone(rows)
			slices.SortStableFunc(rows, func(a, b []string) int { return cellRank(a[column]).compare(cellRank(b[column]), down) })
		}
	}
	out.Rows, out.Matching = rows, len(rows)
	if len(rows) > rowsFirst && asked.Get("rows") != "all" {
		out.Rows, out.All = rows[:rowsFirst], "?"+with(asked, "rows", "all").Encode()
	}
	return out
}

// cellRank sorts a cell of a document by its leading number, in seconds where that is a duration.
func cellRank(text string) rank {
	if text == view.Missing || text == "" {
		return rank{missing: true}
	}
	rest, negative := strings.CutPrefix(text, "overdrawn by ")
	rest = strings.TrimPrefix(rest, "+")
	end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("-.0123456789", r) })
	if end < 0 {
		end = len(rest)
	}
	number, err := strconv.ParseFloat(rest[:end], 64)
	if err != nil {
		return rank{text: strings.ToLower(text)}
	}
	unit, _, _ := strings.Cut(strings.TrimPrefix(rest[end:], " "), ",")
	if seconds := map[string]float64{"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]; seconds > 0 {
		number *= seconds
	}
	if negative {
		number = -number
	}
	return rank{number: number}
}
