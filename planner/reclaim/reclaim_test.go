package reclaim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func ids(q []Scored) []string {
	var out []string
	for _, j := range q {
		out = append(out, fmt.Sprintf("%s %d", j.ID, j.Score))
	}
	return out
}

func TestTheJobThatLosesLeastIsReclaimedFirst(t *testing.T) {
	q, err := Queue([]Job{{ID: "a", Loss: 5, Useless: 1}, {ID: "b", Loss: -1, Useless: 2}, {ID: "c", Loss: 9, Useless: 9}}, []Job{{ID: "u", Useless: 3}, {ID: "v", Useless: 4}})
	if err != nil {
		t.Fatal(err)
	}
	// a: 1 by loss, 2 by use; b: 2 and 1; u: twice 1.
	if got, want := ids(q), []string{"a 3", "b 3", "u 2", "v 0", "c 0"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheScoreOfAJobIsTheNumberOfThoseThatLoseMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(kind string) (jobs []Job) {
			for i := range rapid.IntRange(0, 8).Draw(t, kind) {
				small := rapid.IntRange(0, 2)
				jobs = append(jobs, Job{fmt.Sprint(kind, i), float64(small.Draw(t, "L")), float64(small.Draw(t, "U")), float64(small.Draw(t, "attained"))})
			}
			return jobs
		}
		p, u := draw("p"), draw("u")
		q, err := Queue(p, u)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range q {
			want := 0
			for _, o := range p {
				if slices.Contains(p, j.Job) && byLoss(&j.Job, &o) < 0 {
					want++
				}
				if slices.Contains(p, j.Job) && byUse(&j.Job, &o) < 0 {
					want++
				}
			}
			for _, o := range u {
				if slices.Contains(u, j.Job) && byUse(&j.Job, &o) < 0 {
					want += 2
				}
			}
			if j.Score != want {
				t.Fatalf("%s: score %d, want %d", j.ID, j.Score, want)
			}
		}
	})
}

func TestALevelIsAsLongAsTheContributionBesideItIsLarge(t *testing.T) {
	for _, c := range []struct {
		contributions []float64
		rounding      Rounding
		want          []int
	}{
		{[]float64{0.5, 0.3, 0.2}, "", []int{4, 2, 1}}, // 3.5, 2.1, 1.4 of 7
		{[]float64{0.5, 0.3, 0.2}, Floor, []int{3, 2, 1}},
		{[]float64{0.5, 0.3, 0.2}, Ceil, []int{4, 3, 2}},
		{[]float64{1, 0, -0.1}, Nearest, []int{7, 1, 1}},
		{[]float64{0, 0}, Nearest, []int{4, 4}},
		{nil, "", []int{}},
	} {
		if got, err := Sizes(7, c.contributions, c.rounding); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v %q: %v %v, want %v", c.contributions, c.rounding, got, err, c.want)
		}
	}
	if _, err := Sizes(1, []float64{1}, "up"); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}

func TestAHostReclaimsWhatRunsThere(t *testing.T) {
	q, _ := Queue(nil, []Job{{ID: "a", Useless: 1}, {ID: "b", Useless: 2}, {ID: "c", Useless: 3}, {ID: "d", Useless: 4}})
	got := Levels(q, map[string]bool{"a": true, "c": true, "d": true, "elsewhere": true}, 2)
	if fmt.Sprint(got) != "[[a c] [d]]" {
		t.Errorf("levels %v", got)
	}
}

func TestAJobThatCannotBeIsRefused(t *testing.T) {
	for name, jobs := range map[string][]Job{
		"no name":  {{}},
		"twice":    {{ID: "a"}, {ID: "a"}},
		"negative": {{ID: "a", Useless: -1}},
		"nothing":  {{ID: "a", Loss: math.NaN()}},
	} {
		if _, err := Queue(jobs, nil); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
