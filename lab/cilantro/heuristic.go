package cilantro

import "github.com/trimtab/trimtab/lab/baseline"

// heuristic is a controller: a baseline that sees the mean of what each job
// reported in the last round, and learns nothing but what it keeps itself.
type heuristic struct {
	world *world
	rule  baseline.Rule
	units []int
	// sums are those of the last round, with how many windows were told.
	sums []baseline.Job
	told []float64
}

func newHeuristic(w *world, name string) (Controller, error) {
	h := &heuristic{world: w, units: shares(w), told: make([]float64, len(w.jobs))}
	rule, err := baseline.New(name)
	if err != nil {
		return nil, err
	}
	h.rule = rule
	h.clear()
	return h, nil
}

// clear forgets the last round.
func (h *heuristic) clear() {
	h.sums = make([]baseline.Job, len(h.world.jobs))
	for i := range h.sums {
		j := &h.world.jobs[i]
		h.sums[i] = baseline.Job{Name: j.Name, Type: j.Type, Weight: j.Weight, Min: 1, Max: h.world.env.Capacity,
			Units: h.units[i], SLO: j.SLO, Fraction: j.Fraction}
		h.told[i] = 0
	}
}

// Decide asks the rule, from the second round on.
func (h *heuristic) Decide(r int) ([]int, error) {
	if r == 0 {
		return h.units, nil
	}
	var present []baseline.Job
	var at []int
	for i := range h.sums {
		j := &h.sums[i]
		if h.told[i] == 0 {
			continue
		}
		j.Performance /= h.told[i]
		j.Load /= h.told[i]
		j.Utility /= h.told[i]
		present, at = append(present, *j), append(at, i)
	}
	// Who is silent keeps its minimum.
	left := h.world.env.Capacity - (len(h.sums) - len(present))
	for i := range h.units {
		h.units[i] = 1
	}
	units, err := h.rule.Next(left, present)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		h.units[i] = units[n]
	}
	h.clear()
	return h.units, nil
}

// Tell adds a window to the round.
func (h *heuristic) Tell(_ int, reports []Report) {
	for i := range reports {
		r := &reports[i]
		if r.Silent {
			continue
		}
		h.told[i]++
		h.sums[i].Performance += r.Performance
		h.sums[i].Load += r.Load
		h.sums[i].Utility += h.world.jobs[i].utility(r.Performance)
	}
}
