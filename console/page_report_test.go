package console

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// missing has workloads w000, w001 and so on, of which each misses its SLO for longer than the
// one before.
func missing(t *testing.T, workloads int) *view.Model {
	t.Helper()
	c := view.Config{Pool: "cpu", Resource: "cpu", Capacity: 1000, Round: 30 * time.Second, Objective: "njc"}
	for i := range workloads {
		c.Workloads = append(c.Workloads, view.Workload{Name: fmt.Sprintf("w%03d", i), Mode: trimtab.Act, SLO: "95%", Target: .95})
	}
	v, now := view.New(c), time.Now()
	for minute := range workloads {
		for i := range workloads {
			y := .99
			if minute < i {
				y = .5
			}
			v.Observe(&trimtab.Estimate{Workload: c.Workloads[i].Name, Time: now.Add(time.Duration(minute-workloads) * time.Minute), Performance: &y, Model: "test/1", Reports: minute + 1})
		}
	}
	return v
}

// rowsOf are the first cells of the rows of a table of the page.
func rowsOf(t *testing.T, v *view.Model, path, section string) (rows []string, text string) {
	t.Helper()
	code, body, _ := request(t, Handler(v, Options{}), "GET", path, "")
	if code != 200 {
		t.Fatalf("%s: %d\n%s", path, code, body)
	}
	_, text, ok := strings.Cut(body, `data-key="`+section+`"`)
	if !ok {
		t.Fatalf("%s: no section %s\n%s", path, section, body)
	}
	text, _, _ = strings.Cut(text, "</section>")
	for _, m := range regexp.MustCompile(`<th scope="row">([^<]*)</th>`).FindAllStringSubmatch(text, -1) {
		rows = append(rows, m[1])
	}
	return rows, text
}

func TestAReportBeginsWithTheFiftyWorkloadsThatMissedTheirSLOForLongestAndLinksToAll(t *testing.T) {
	v := missing(t, 60)
	rows, text := rowsOf(t, v, "/report?since=24h", "Workloads")
	if len(rows) != rowsFirst || rows[0] != "w059" || rows[49] != "w010" || !strings.Contains(text, "50 of 60 are shown") || !strings.Contains(text, `href="?rows=all&amp;since=24h"`) {
		t.Errorf("%d rows, from %v\n%s", len(rows), rows[:2], text[max(0, len(text)-400):])
	}
	if rows, text := rowsOf(t, v, "/report?since=24h&rows=all", "Workloads"); len(rows) != 60 || strings.Contains(text, "are shown") {
		t.Errorf("%d rows of all 60", len(rows))
	}
}

func TestTheWorkloadsOfAReportAreFilteredByNameAndSortedByAnyColumn(t *testing.T) {
	v := missing(t, 60)
	if rows, _ := rowsOf(t, v, "/report?since=24h&q=W00", "Workloads"); len(rows) != 10 || rows[0] != "w009" {
		t.Errorf("rows %v, want the ten that begin with w00", rows)
	}
	if rows, text := rowsOf(t, v, "/report?since=24h&q=nobody", "Workloads"); len(rows) != 0 || !strings.Contains(text, "No workload here matches nobody.") {
		t.Errorf("rows %v\n%s", rows, text)
	}
	for sort, want := range map[string]string{"t0.0": "w000", "-t0.0": "w059", "t0.4": "w059", "-t0.4": "w000"} {
		if rows, _ := rowsOf(t, v, "/report?since=24h&sort="+sort, "Workloads"); len(rows) == 0 || rows[0] != want {
			t.Errorf("sorted by %s: %v first, want %s", sort, rows[:min(3, len(rows))], want)
		}
	}
	for _, sort := range []string{"t0.99", "t0.-1", "t9.0", "t0.x"} {
		if rows, _ := rowsOf(t, v, "/report?since=24h&sort="+sort, "Workloads"); len(rows) != rowsFirst {
			t.Errorf("sorted by %s: %d rows", sort, len(rows))
		}
	}
}

func TestCellsOfAReportAreRankedByNumberAndTimeWithWhatIsMissingLast(t *testing.T) {
	for _, want := range [][]string{
		{"overdrawn by 30%", "0%", "9.5%", "62%", view.Missing},
		{"-3 (-9 to 1)", "+0.5 (0 to 1)", "+12 (3 to 20)", view.Missing},
		{"9.5 s", "110 s", "3 min", "2 h, goes on", "3 d"},
		{"act", "off", "recommend"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortStableFunc(got, func(a, b string) int { return cellRank(a).compare(cellRank(b), false) })
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
