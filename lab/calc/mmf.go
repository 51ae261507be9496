package calc

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/machines"
)

// mmfInput is what [MMF] reads.
type mmfInput struct {
	Machines    []mmfMachine        `json:"machines"`
	Jobs        []mmfJob            `json:"jobs,omitempty"`
	RP          bool                `json:"rp_oversubscription,omitempty"`
	K           int                 `json:"K"`
	KTask       *int                `json:"K_task,omitempty"`
	KCPI        *int                `json:"K_cpi,omitempty"`
	KMPKI       *int                `json:"K_mpki,omitempty"`
	Thresholds  map[string]*float64 `json:"thresholds,omitempty"`
	LoadFilter  map[string]*float64 `json:"load_filter,omitempty"`
	QueueFilter map[string]*float64 `json:"queue_filter,omitempty"`
	Limit       int                 `json:"L_max"`
	D           *float64            `json:"d,omitempty"`
	Strict      bool                `json:"strict_topk,omitempty"`
}

type mmfMachine struct {
	ID        string             `json:"id"`
	Connected *bool              `json:"connected,omitempty"`
	CPI       *float64           `json:"cpi,omitempty"`
	MPKI      *float64           `json:"mpki,omitempty"`
	Load      map[string]float64 `json:"load"`
	Capacity  map[string]float64 `json:"capacity,omitempty"`
}

type mmfJob struct {
	Tasks []struct {
		Machine string `json:"machine"`
		Status  string `json:"status"`
	} `json:"tasks"`
}

// mmfOutput is what [MMF] answers.
type mmfOutput struct {
	Scores map[string]int64 `json:"scores"`
	B0     []string         `json:"B0"`
	B1     []string         `json:"B1"`
	B2     []string         `json:"B2"`
	B3     []string         `json:"B3"`
	// Missing are machines without a value that the filters or thresholds read.
	Missing    []string              `json:"missing"`
	Index      map[string][2]float64 `json:"index"`
	Candidates []string              `json:"candidates"`
}

// MMF rates machines (TBAMR) and selects candidates for speculative tasks:
//
//	in:  {"machines": [{"id", "connected", "cpi", "mpki", "load": {dim: value},
//	      "capacity": {dim: c}}], "jobs": [{"tasks": [{"machine", "status"}]}],
//	      "rp_oversubscription", "K", "K_task", "K_cpi", "K_mpki", "thresholds",
//	      "load_filter", "queue_filter", "L_max", "d", "strict_topk"}
//	out: {"scores": {machine: s}, "B0", "B1", "B2", "B3", "missing": [machines],
//	      "index": {machine: [lIndex, qIndex]}, "candidates": [machines]}
//
// Scores are of penalised machines, with strict_topk of all. A machine without
// a value that is read is no candidate; null in a filter leaves the dimension
// out. See package machines.
func MMF(r io.Reader) (any, error) {
	var in mmfInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	// All reports are of one moment: the algorithm knows no others.
	moment := time.Unix(0, 0)
	x, err := in.index(moment)
	if err != nil {
		return nil, err
	}
	scores, err := in.scores(x)
	if err != nil {
		return nil, err
	}
	x.SetScores(scores)
	rule := machines.Rule{
		Limit: in.Limit, Widen: or(in.D, 2), Strict: in.Strict,
		WorstRated: in.K, WorstCPI: or(in.KCPI, in.K), WorstMPKI: or(in.KMPKI, in.K),
	}
	if in.RP {
		rule.Mode = machines.RP
	}
	result, err := x.Filter(moment, rule, nil)
	if err != nil {
		return nil, err
	}
	return in.answer(x, &result)
}

// or returns what p points to, or another value where it is nil.
func or[T any](p *T, another T) T {
	if p != nil {
		return *p
	}
	return another
}

// index takes all machines in, over the dimensions that anything names, in the
// order of their names.
func (in *mmfInput) index(moment time.Time) (*machines.Index[float64], error) {
	names := map[string]bool{}
	for _, of := range []map[string]*float64{in.Thresholds, in.LoadFilter, in.QueueFilter} {
		for name := range of {
			names[name] = true
		}
	}
	ids := make([]string, len(in.Machines))
	for i, m := range in.Machines {
		ids[i] = m.ID
		for name := range m.Load {
			names[name] = true
		}
	}
	config := machines.Config{Timeout: time.Second}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		config.Dimensions = append(config.Dimensions, machines.Dimension{
			Name: name, Threshold: in.Thresholds[name], Load: in.LoadFilter[name], Queue: in.QueueFilter[name],
		})
	}
	x, err := machines.New[float64](config)
	if err != nil {
		return nil, err
	}
	if _, err := x.SetMachines(ids); err != nil {
		return nil, err
	}
	for i := range in.Machines {
		if err := in.Machines[i].report(x, config.Dimensions, moment); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return x, nil
}

// report enters one machine; a number that makes no sense is an error here.
func (m *mmfMachine) report(x *machines.Index[float64], dimensions []machines.Dimension, moment time.Time) error {
	r := machines.Report{Machine: m.ID, Time: moment, CPI: or(m.CPI, math.NaN()), MPKI: or(m.MPKI, math.NaN())}
	for _, d := range dimensions {
		load, capacity := math.NaN(), math.NaN()
		if v, ok := m.Load[d.Name]; ok {
			load = v
		}
		if v, ok := m.Capacity[d.Name]; ok {
			capacity = v
		}
		r.Load, r.Capacity = append(r.Load, load), append(r.Capacity, capacity)
	}
	bad, err := x.Update(moment, &r)
	if err == nil && bad > 0 {
		err = trimtab.Invalidf("machine %.60q: loads, capacities, cpi and mpki: want numbers >= 0", m.ID)
	}
	if err == nil && !or(m.Connected, true) {
		err = x.Disconnect(m.ID)
	}
	return err
}

// scores rates the machines by all jobs.
func (in *mmfInput) scores(x *machines.Index[float64]) ([]int64, error) {
	top := or(in.KTask, in.K)
	if top < 0 {
		return nil, trimtab.Invalidf("K_task %d: want >= 0", top)
	}
	jobs := make([][]machines.Count, len(in.Jobs))
	for j, job := range in.Jobs {
		counts := map[uint32]int{}
		for k, task := range job.Tasks {
			at, known := x.Position(task.Machine)
			if !known {
				return nil, trimtab.Invalidf("job %d: task %d: unknown machine %.60q", j, k, task.Machine)
			}
			switch task.Status {
			case "failed", "crashed", "tailed", "killed":
				counts[at]++
			}
		}
		for _, at := range slices.Sorted(maps.Keys(counts)) {
			jobs[j] = append(jobs[j], machines.Count{Machine: at, Tasks: counts[at]})
		}
	}
	return machines.Scores(len(in.Machines), jobs, top), nil
}

// answer names the machines.
func (in *mmfInput) answer(x *machines.Index[float64], result *machines.Result) (any, error) {
	out := mmfOutput{
		Scores: map[string]int64{}, B0: []string{}, B1: []string{}, B2: []string{}, B3: []string{}, Missing: []string{},
		Index: map[string][2]float64{}, Candidates: make([]string, len(result.Candidates)),
	}
	lists := []struct {
		reason machines.Reason
		of     *[]string
	}{
		{machines.Interferes, &out.B0}, {machines.WeakRated, &out.B1}, {machines.Disconnected, &out.B2},
		{machines.Overloaded, &out.B3}, {machines.Missing, &out.Missing},
	}
	for i, id := range x.IDs() {
		at := uint32(i)
		if score := x.Score(at); score < 0 || in.Strict {
			out.Scores[id] = score
		}
		for _, l := range lists {
			if result.Why[i]&l.reason != 0 {
				*l.of = append(*l.of, id)
			}
		}
		if result.Why[i] == 0 {
			load, queue := x.Indices(at)
			if math.IsInf(queue, 0) || math.IsNaN(queue) {
				return nil, trimtab.Invalidf("row %d: the sum of the queue filter is out of range", i)
			}
			out.Index[id] = [2]float64{load, queue}
		}
	}
	for i, at := range result.Candidates {
		out.Candidates[i] = x.IDs()[at]
	}
	return out, nil
}
