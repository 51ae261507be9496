package console

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/speculation"
)

// sortLink is the link in the head of a column.
var sortLink = regexp.MustCompile(`<th scope="col"[^>]*><a class="sort" href="(\?[^"]*sort=[^"]*)">`)

func TestEveryColumnThatCanBeSortedByIsSortedBothWaysAndLeftAgain(t *testing.T) {
	v, o := batchConsole(new([]*speculation.JobRequest))
	for _, host := range []string{"h1", "h2"} {
		v.Observe(&trimtab.Holding{Pool: "cpu", Host: host, Time: time.Now(), LeaseLeft: 30, Capacity: map[string]float64{"cpu": 8}, Targets: []trimtab.KnobState{onHost(host, "a", 1), onHost(host, "b", 2.5)}})
	}
	v.Observe(plan(1, 2))
	h, found := Handler(v, o), 0
	for _, path := range []string{"/", "/hosts", "/hosts/h1", "/workloads/shop", "/batch", "/batch?job=night", "/plan", "/pipeline"} {
		_, body, _ := request(t, h, "GET", path, "")
		for _, m := range sortLink.FindAllStringSubmatch(body, -1) {
			found++
			page, _, _ := strings.Cut(path, "?")
			at := strings.ReplaceAll(m[1], "&amp;", "&")
			for _, want := range []string{`aria-sort="ascending"`, `aria-sort="descending"`, ""} {
				code, body, _ := request(t, h, "GET", page+at, "")
				if code != 200 || !strings.Contains(body, want) || want == "" && strings.Contains(body, "aria-sort") {
					t.Fatalf("%s%s: %d, not %q", page, at, code, want)
				}
				if want == "" {
					break
				}
				next := regexp.MustCompile(want + `><a class="sort" href="(\?[^"]*)">`).FindStringSubmatch(body)
				if next == nil {
					t.Fatalf("%s%s: the head has no link on", page, at)
				}
				at = strings.ReplaceAll(next[1], "&amp;", "&")
			}
		}
	}
	if found < 35 {
		t.Errorf("%d columns can be sorted by", found)
	}
}

func TestAListOfSeveralPagesStaysSortedFromOneToTheNext(t *testing.T) {
	v := crowd(250, 500, time.Now())
	for n := range 120 {
		v.Observe(&trimtab.Holding{Pool: "cpu", Host: fmt.Sprint("h", n), Time: time.Now(), Capacity: map[string]float64{"cpu": 8}, Targets: []trimtab.KnobState{onHost(fmt.Sprint("h", n), "a", 1)}})
	}
	h := Handler(v, Options{})
	for _, path := range []string{"/", "/hosts"} {
		for query, want := range map[string]string{"": "?offset=100\"", "?sort=-name": "?offset=100&amp;sort=-name\"", "?offset=100&sort=name": "?sort=name\""} {
			code, body, _ := request(t, h, "GET", path+query, "")
			if code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s%s: %d, no %s", path, query, code, want)
			}
		}
		if code, body, _ := request(t, h, "GET", path+"?sort=weather", ""); code != 400 || !strings.Contains(body, "want name") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestRowsAreSortedByAnyFieldWithWhatIsMissingLast(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	rows := []view.Knob{
		{KnobState: trimtab.KnobState{KnobID: trimtab.KnobID{Host: "b"}, Now: trimtab.Units(2)}, Share: share(.1)},
		{KnobState: trimtab.KnobState{KnobID: trimtab.KnobID{Host: "c"}, Now: trimtab.Amount{Unlimited: true}}},
		{KnobState: trimtab.KnobState{KnobID: trimtab.KnobID{Host: "A"}, Now: trimtab.Units(3), Since: noon}, Share: share(.9)},
	}
	for by, want := range map[string]string{
		"t.Host": "Abc", "-t.Host": "cbA", "t.Now": "bAc", "-t.Now": "cAb", "t.Share": "bAc", "-t.Share": "Abc", "t.Since": "Abc",
		"other.Host": "bcA", "t": "bcA", "t.": "bcA", "t.None": "bcA", "t.Host.x": "bcA", "t.Fast.From": "bcA", "": "bcA",
	} {
		f := frame{query: map[string][]string{"sort": {by}}}
		got := ""
		for _, k := range f.Sorted("t", rows).([]view.Knob) {
			got += k.Host
		}
		if got != want {
			t.Errorf("sort=%s: %s, want %s", by, got, want)
		}
	}
	if rows[0].Host != "b" {
		t.Error("the rows themselves were moved")
	}
}

func TestNoPathThatSomebodySendsBreaksSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"Action", "Why", "Cause", "Bounds", "Set", "Moves", "Inputs", "Result", "KnobID", "Target", "lower", "Kind", "x", ""})
		path := strings.Join(rapid.SliceOfN(name, 1, 5).Draw(t, "path"), ".")
		f := frame{query: map[string][]string{"sort": {rapid.SampledFrom([]string{"", "-"}).Draw(t, "way") + "moves." + path}}}
		in := []view.Decision{{Plan: "1-2"}, {Plan: "1-1"}, {Plan: "1-3", Cause: &trimtab.Cause{Kind: "tick"}}}
		var got []string
		for _, d := range f.Sorted("moves", in).([]view.Decision) {
			got = append(got, d.Plan)
		}
		slices.Sort(got)
		if !reflect.DeepEqual(got, []string{"1-1", "1-2", "1-3"}) {
			t.Fatalf("%s: %v", path, got)
		}
	})
}

func TestATrendHasWhatWasSeenAndGapsWhereNothingWas(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		points []*float64
		want   string
	}{
		{nil, ""},
		{[]*float64{v(1), v(2)}, ""},
		{[]*float64{v(0), v(0), v(0)}, ""},
		{[]*float64{v(0), v(1), nil, v(2)}, "M0.0 20.0L33.3 10.5M100.0 1.0"},
	} {
		if got := spark(c.points, 0); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := spark([]*float64{v(math.MaxFloat64), v(1), v(2)}, 1); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error(got)
	}
}
