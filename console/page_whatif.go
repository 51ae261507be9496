package console

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/whatif"
)

// whatIfPage is the data of whatif.html.
type whatIfPage struct {
	Frame frame
	// Answer is the answer to the change; where Problem says why there is none, the answer
	// without a change, or nil.
	Answer  *whatif.Answer
	Problem string
	Query   string
	// Capacity and Knobs are the sliders; Hidden counts the workloads without one.
	Capacity *slider
	Knobs    []whatIfKnobs
	Hidden   int
	// Rows are the workloads, those whose allocation changes most first; More counts
	// the others.
	Rows    []whatif.Workload
	More    int
	longest float64
}

// whatIfKnobs are the sliders of one workload.
type whatIfKnobs struct {
	Workload    string
	Weight, SLO slider
}

// slider is one number that the user can change.
type slider struct {
	Name, Label                   string
	Value, Was, Least, Most, Step string
	Share                         bool
}

func (s *site) drawWhatIf(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := whatIfPage{Frame: s.frame(r, "what-if", "What if", "/api/v1/what-if?"+query.Encode()), Query: query.Get("q")}
	p.Frame.Script, p.Frame.Between = "whatif.js", 10_000
	change, err := changeOf(query)
	if err == nil {
		p.Answer, err = s.whatIfNow(r.Context(), change)
	}
	code := http.StatusOK
	if err != nil {
		p.Problem, code = err.Error(), statusOf(err)
		p.Answer, _ = s.whatIfNow(r.Context(), whatif.Change{}) // the sliders stay
	}
	if p.Answer != nil {
		code = http.StatusOK
		p.draw(query)
	}
	s.render(w, code, "whatif.html", &p)
}

// draw sets sliders and rows.
func (p *whatIfPage) draw(query url.Values) {
	a := p.Answer
	c := dragged("capacity:"+a.Resource, "Capacity, "+view.Unit(a.Resource), a.CapacityBefore, .25*a.CapacityBefore, 2*a.CapacityBefore, 0, query)
	p.Capacity = &c
	for i := range a.Workloads {
		w := &a.Workloads[i]
		p.longest = max(p.longest, w.Before.Allocation, w.After.Allocation)
		if !strings.Contains(strings.ToLower(w.Workload), strings.ToLower(p.Query)) {
			continue
		}
		if len(p.Knobs) == rowsPerPage {
			p.Hidden++
			continue
		}
		b := w.Before
		k := whatIfKnobs{Workload: w.Workload, Weight: dragged("weight:"+w.Workload, "Weight of "+w.Workload, b.Weight, b.Weight/4, 4*b.Weight, 0, query)}
		if w.Share {
			k.SLO = dragged("slo:"+w.Workload, "SLO of "+w.Workload, b.SLO, .5, .9995, .005, query)
			k.SLO.Share = true
		} else {
			k.SLO = dragged("slo:"+w.Workload, "SLO of "+w.Workload, b.SLO, b.SLO/2, 2*b.SLO, 0, query)
		}
		p.Knobs = append(p.Knobs, k)
	}
	p.Rows = slices.SortedStableFunc(slices.Values(a.Workloads), func(x, y whatif.Workload) int {
		return cmp.Compare(math.Abs(y.Moved()), math.Abs(x.Moved()))
	})
	p.Rows, _ = p.Frame.Sorted("answer", p.Rows).([]whatif.Workload)
	p.More = max(0, len(p.Rows)-rowsPerPage)
	p.Rows = p.Rows[:len(p.Rows)-p.More]
}

// dragged is a slider from least to most that has the present value among its steps, as browsers
// move any other to the nearest step. Without a step it has about 60.
func dragged(name, label string, was, least, most, step float64, query url.Values) slider {
	if step == 0 {
		step = math.Pow(10, math.Floor(math.Log10((most-least)/60)))
		for _, f := range []float64{5, 2} {
			if (most-least)/(f*step) >= 40 {
				step *= f
				break
			}
		}
	}
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
	s := slider{Name: name, Label: label, Was: text(was), Step: text(step),
		Least: text(was - math.Floor((was-least)/step+1e-9)*step), Most: text(was + math.Floor((most-was)/step+1e-9)*step)}
	if s.Value = query.Get(name); s.Value == "" {
		s.Value = s.Was
	}
	return s
}

// Shown formats the value for people, with the present value if it differs.
func (s slider) Shown() string {
	text := func(v string) string {
		if x, err := strconv.ParseFloat(v, 64); err == nil && s.Share {
			return strconv.FormatFloat(math.Round(1e4*x)/100, 'f', -1, 64) + "%"
		}
		return v
	}
	if s.Value == s.Was {
		return text(s.Value)
	}
	return text(s.Value) + " (now " + text(s.Was) + ")"
}

// AllocationBar shows the allocation that the workload would have, with a mark at its present
// target.
func (p *whatIfPage) AllocationBar(w whatif.Workload) bar {
	return bar{Fill: along(w.After.Allocation, p.longest), Class: "fill",
		Ticks: []barTick{{along(w.Before.Allocation, p.longest), "tick", "without the change " + view.Number(w.Before.Allocation)}}}
}
