package view

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// allPages are all decisions on a workload, by pages of so many.
func allPages(t interface{ Fatal(...any) }, v *Model, workload string, limit int, now time.Time) (out []*Decision) {
	for before := ""; ; {
		page, ok, err := v.Decisions(workload, before, limit, now)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return nil
		}
		out = append(out, page.Decisions...)
		if before = page.Next; before == "" {
			return out
		}
	}
}

func asJSON(t interface{ Fatal(...any) }, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNobodySeesWhereADecisionIsKept: a view with a shelf says the same as one
// without, whatever happens.
func TestNobodySeesWhereADecisionIsKept(t *testing.T) {
	dir := t.TempDir()
	shelved := 0
	rapid.Check(t, func(t *rapid.T) {
		workloads := []string{"a", "b", "c"}
		c := Config{Round: time.Second, Resource: "cpu"}
		plain := New(c)
		c.Dir = dir
		view := New(c)
		for i := range rapid.SampledFrom([]int{0, 100, 1100}).Draw(t, "others") {
			for _, v := range []*Model{plain, view} {
				v.workloads.state(fmt.Sprint("other", i)) // which leave each less memory
			}
		}
		var late []*trimtab.Outcome
		second, sequence := 0, 0
		observe := func(value trimtab.Value) {
			plain.Observe(value)
			view.Observe(value)
		}
		for range rapid.IntRange(1, 12).Draw(t, "bursts") {
			for range rapid.IntRange(1, 30).Draw(t, "rounds") {
				second, sequence = second+1, sequence+1
				p := at(second, rapid.SliceOfNDistinct(rapid.SampledFrom(workloads), 1, 3, rapid.ID).Draw(t, "moved")...)
				p.Sequence = uint64(sequence)
				p.Actions[0].Resource = rapid.SampledFrom([]string{"cpu", "memory"}).Draw(t, "resource")
				observe(p)
				late = append(late, answer(p, trimtab.Written))
				if rapid.Bool().Draw(t, "answered") {
					for _, o := range late {
						observe(o)
					}
					late = nil
				}
				e := report(second, rapid.Float64Range(0, 1).Draw(t, "performance"))
				e.Workload = rapid.SampledFrom(workloads).Draw(t, "reports")
				observe(e)
			}
			if rapid.IntRange(0, 9).Draw(t, "refuted") == 0 {
				p := at(second, "a")
				p.Sequence = uint64(rapid.IntRange(1, sequence).Draw(t, "from"))
				for _, v := range []*Model{plain, view} {
					v.plans.refute(p)
					v.book.refute(p)
				}
				sequence = int(p.Sequence)
			}
		}
		now := noon.Add(time.Duration(second) * time.Second)
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		for _, w := range workloads {
			if got, want := asJSON(t, allPages(t, view, w, limit, now)), asJSON(t, allPages(t, plain, w, limit, now)); got != want {
				t.Fatalf("%s: %s\nwithout a shelf: %s", w, got, want)
			}
			got, _ := view.Explain(w, 30, now)
			want, _ := plain.Explain(w, 30, now)
			if asJSON(t, got) != asJSON(t, want) {
				t.Fatalf("explained: %s\nwithout a shelf: %s", asJSON(t, got), asJSON(t, want))
			}
			patch, _, _ := view.Patch(w)
			if other, _, _ := plain.Patch(w); asJSON(t, patch) != asJSON(t, other) {
				t.Fatalf("patch: %+v, without a shelf: %+v", patch, other)
			}
			if s := view.workloads.all[w]; s != nil {
				shelved += s.shelved
			}
		}
		if got, want := len(view.book.order), len(plain.book.order); got != want {
			t.Fatalf("%d are kept, without a shelf %d", got, want)
		}
	})
	if shelved == 0 {
		t.Error("nothing was on the shelf")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
}

func TestWithoutADiskDecisionsStayInMemory(t *testing.T) {
	v := New(Config{Round: time.Second, Dir: "/dev/null/nowhere"})
	for n := range 1000 {
		p := at(n, "shop")
		v.Observe(p)
		v.Observe(answer(p, trimtab.Written))
	}
	if all := allPages(t, v, "shop", MaxDecisions, noon); len(all) != 1000 {
		t.Errorf("%d are kept", len(all))
	}
}

// A disk that fails later costs what is on it, and nothing else.
func TestDecisionsThatCannotBeReadBackAreLeftOut(t *testing.T) {
	v := New(Config{Round: time.Second, Dir: t.TempDir()})
	for n := range 1000 {
		p := at(n, "shop")
		v.Observe(p)
		v.Observe(answer(p, trimtab.Written))
	}
	s := v.workloads.all["shop"]
	if err := v.book.shelf.current.file.Close(); err != nil {
		t.Fatal(err)
	}
	if all := allPages(t, v, "shop", MaxDecisions, noon); len(all) != len(s.decisions) {
		t.Errorf("%d can be read, %d are in memory", len(all), len(s.decisions))
	}
	v.Observe(answer(at(0, "shop"), trimtab.Written)) // which fetches all
	if n := s.stored(); n != len(s.decisions) || len(v.book.order) != n {
		t.Errorf("%d are kept, %d in order, %d in memory", n, len(v.book.order), len(s.decisions))
	}
	for n := range 100 {
		v.Observe(at(1000+n, "shop"))
	}
	if all := allPages(t, v, "shop", MaxDecisions, noon); all[0].Sequence != 1100 {
		t.Errorf("the newest is %s", all[0].Plan)
	}
}
