package machines

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	filter "github.com/trimtab/trimtab/planner/machines"
)

// Options say what is measured.
type Options struct {
	// Machines is their number, 1 to [filter.MaxMachines].
	Machines int
	// Samples is the length of the window of one load, >= 1.
	Samples int
	// Managers is how many job managers hear of the candidates.
	Managers int
	// Repeat is how often each is measured; the least time counts.
	Repeat int
	// Seed of the random loads.
	Seed uint64
	// Level approximates the load level of one window. nil: it is not measured.
	Level func(window []float64) (float64, error)
	// Progress is told what is being done; nil: nobody is.
	Progress func(doing string)
}

// Report is what was measured; seconds are of wall time on one core.
type Report struct {
	Machines int `json:"machines"`
	Samples  int `json:"samples"`
	// FilterSeconds is one filtering of all machines, levels known.
	FilterSeconds float64 `json:"filter_seconds"`
	NsPerMachine  float64 `json:"ns_per_machine"`
	Candidates    int     `json:"candidates"`
	// UpdateSeconds is one report of one machine.
	UpdateSeconds float64 `json:"update_seconds"`
	// BytesPerMachine is the memory of the index, with names and with what a
	// filtering needs.
	BytesPerMachine float64 `json:"bytes_per_machine"`
	// FirstSyncBytes and LaterSyncBytes are those that all job managers send
	// and get, at the start and when a tenth of the machines was chosen afresh.
	Managers       int   `json:"job_managers"`
	FirstSyncBytes int64 `json:"first_sync_bytes"`
	LaterSyncBytes int64 `json:"later_sync_bytes"`
	// LLASecondsPerMachine is the level of one window of Samples; left out where
	// it is not measured.
	LLASecondsPerMachine *float64 `json:"lla_seconds_per_machine,omitempty"`
}

// mostSamples is more than a window ever has: a day at 1 ms.
const mostSamples = 100_000_000

func (o *Options) check() error {
	if o.Machines < 1 || o.Machines > filter.MaxMachines || o.Samples < 1 || o.Samples > mostSamples || o.Managers < 0 || o.Repeat < 1 {
		return trimtab.Invalidf("%d machines, %d samples, %d job managers, %d repeats: want 1 to %d, 1 to %d, >= 0 and >= 1",
			o.Machines, o.Samples, o.Managers, o.Repeat, filter.MaxMachines, mostSamples)
	}
	return nil
}

func (o *Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// trial is one run.
type trial struct {
	Options
	rng    *rand.Rand
	ids    []string
	index  *filter.Index[float32]
	report Report
}

// Run measures.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	t := trial{Options: o, rng: rand.New(rand.NewPCG(o.Seed, 1)), report: Report{Machines: o.Machines, Samples: o.Samples, Managers: o.Managers}}
	for _, part := range []func(context.Context) error{t.build, t.filter, t.update, t.sync, t.level} {
		if err := part(ctx); err != nil {
			return Report{}, err
		}
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
	}
	return t.report, nil
}

// build lets all machines report, and weighs the index.
func (t *trial) build(ctx context.Context) error {
	t.say("%d machines report", t.Machines)
	before := live()
	ids := make([]string, t.Machines)
	for i := range ids {
		ids[i] = fmt.Sprintf("node%07d.dc1", i)
	}
	var err error
	t.index, err = filter.New[float32](filter.Config{Dimensions: dimensions(), Timeout: time.Minute, SettleAfter: time.Hour, RatingPeriod: time.Hour})
	if err != nil {
		return err
	}
	if _, err := t.index.SetMachines(ids); err != nil {
		return err
	}
	t.ids = t.index.IDs()
	r := newReport()
	for i, id := range t.ids {
		t.draw(&r)
		r.Machine, r.Time = id, moment(0)
		if _, err := t.index.Update(moment(0), &r); err != nil {
			return err
		}
		if i%100_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if _, err := t.index.Filter(moment(0), t.rule(), nil); err != nil {
		return err
	}
	t.report.BytesPerMachine = (live() - before) / float64(t.Machines)
	return t.rate()
}

// rate lets a hundred jobs penalise machines.
func (t *trial) rate() error {
	for job := range 100 {
		counts := make([]filter.Count, 0, filter.MostPenalised)
		for range filter.MostPenalised {
			at := uint32(t.rng.IntN(t.Machines))
			if !slices.ContainsFunc(counts, func(c filter.Count) bool { return c.Machine == at }) {
				counts = append(counts, filter.Count{Machine: at, Tasks: 1 + t.rng.IntN(9)})
			}
		}
		if err := t.index.Rate(moment(0), fmt.Sprint("job-", job), counts, filter.MostPenalised); err != nil {
			return err
		}
	}
	return nil
}

// live returns the bytes of the heap that are in use.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (t *trial) rule() filter.Rule {
	worst := (t.Machines + 99) / 100
	return filter.Rule{Mode: filter.RP, Limit: (t.Machines + 9) / 10, Widen: 2, WorstRated: worst, WorstCPI: worst, WorstMPKI: worst}
}

// moment is a fixed time, and so many milliseconds later.
func moment(ms int) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond)
}

func (t *trial) filter(ctx context.Context) error {
	least := math.Inf(1)
	for k := range t.Repeat {
		t.say("filtering %d machines, %d of %d", t.Machines, k+1, t.Repeat)
		start := time.Now()
		r, err := t.index.Filter(moment(0), t.rule(), nil)
		least = min(least, time.Since(start).Seconds())
		if err != nil {
			return err
		}
		t.report.Candidates = len(r.Candidates)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	t.report.FilterSeconds, t.report.NsPerMachine = least, least*1e9/float64(t.Machines)
	return nil
}

// update measures batches of reports from machines all over the index.
func (t *trial) update(context.Context) error {
	const batch = 1000
	least, ms := math.Inf(1), 0
	reports := make([]filter.Report, batch)
	for range t.Repeat {
		for i := range reports {
			ms++
			reports[i] = newReport()
			t.draw(&reports[i])
			reports[i].Machine, reports[i].Time = t.ids[t.rng.IntN(len(t.ids))], moment(ms)
		}
		start := time.Now()
		for i := range reports {
			if _, err := t.index.Update(moment(0), &reports[i]); err != nil {
				return err
			}
		}
		least = min(least, time.Since(start).Seconds()/batch)
	}
	t.report.UpdateSeconds = least
	return nil
}

// sync adds up what the job managers send and get.
func (t *trial) sync(context.Context) error {
	p, err := filter.NewPublisher(uint64(moment(0).UnixNano()))
	if err != nil {
		return err
	}
	view, err := filter.NewView(time.Minute)
	if err != nil {
		return err
	}
	for range 2 {
		positions := t.rng.Perm(t.Machines)[:(t.Machines+9)/10]
		candidates := make([]uint32, len(positions))
		for i, at := range positions {
			candidates[i] = uint32(at)
		}
		message, err := p.Update(t.ids, candidates)
		if err != nil {
			return err
		}
		bytes := len(message)
		if view.MustAsk() {
			bytes += len(view.Request()) + len(p.Full())
			if err := view.Receive(moment(0), p.Full()); err != nil {
				return err
			}
		}
		t.report.FirstSyncBytes, t.report.LaterSyncBytes = max(t.report.FirstSyncBytes, int64(bytes)), int64(bytes)
	}
	t.report.FirstSyncBytes *= int64(t.Managers)
	t.report.LaterSyncBytes *= int64(t.Managers)
	return nil
}

// level measures the approximation of one window.
func (t *trial) level(ctx context.Context) error {
	if t.Level == nil {
		return nil
	}
	window := make([]float64, t.Samples)
	for i := range window {
		window[i] = t.rng.Float64()
	}
	least := math.Inf(1)
	for range 20 * t.Repeat { // it takes microseconds
		start := time.Now()
		if _, err := t.Level(window); err != nil {
			return err
		}
		least = min(least, time.Since(start).Seconds())
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	t.report.LLASecondsPerMachine = &least
	return nil
}
