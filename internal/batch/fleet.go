package batch

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/planner/jobs"
	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/speculation"
)

const (
	// chooseEvery is how often candidates are selected (ROSE, 5.1).
	chooseEvery = 10 * time.Second
	// machineSilent is the time without a report after which a machine counts as disconnected;
	// after machineGone it is removed from the list.
	machineSilent = 15 * time.Second
	machineGone   = time.Hour
	// mostMachines bounds the list, mostRated the counts that are read of a job (its K).
	mostMachines = 20_000
	mostRated    = machines.MostPenalised
)

// selector configures the selection of candidates.
type selector struct {
	config machines.Config
	rule   machines.Rule
	loads  []string // the first dimensions; the counts of tasks follow
	worst  float64
}

func newSelector(b *config.TaskManager) selector {
	s := selector{worst: *b.Worst, rule: machines.Rule{Limit: b.Candidates, Widen: b.Widen, Own: true},
		config: machines.Config{Timeout: machineSilent, SettleAfter: time.Minute, RatingPeriod: time.Hour}}
	for _, p := range []machines.Policy{machines.MMF, machines.RB, machines.SLB, machines.QLB} {
		if p.String() == b.Policy {
			s.rule.Policy = p
		}
	}
	if b.Mode == config.Responsiveness {
		s.rule.Mode = machines.RP
	}
	names := map[string]bool{}
	for _, of := range []map[string]float64{b.Thresholds, b.Weights} {
		for name := range of {
			names[name] = true
		}
	}
	s.loads = slices.Sorted(maps.Keys(names))
	for _, name := range s.loads {
		d := machines.Dimension{Name: name}
		if v, ok := b.Thresholds[name]; ok {
			d.Threshold = &v
		}
		if v, ok := b.Weights[name]; ok {
			d.Load = &v
		}
		s.config.Dimensions = append(s.config.Dimensions, d)
	}
	for _, name := range []string{"running tasks", "waiting tasks", "regular tasks"} {
		s.config.Dimensions = append(s.config.Dimensions, machines.Dimension{Name: name, Queue: new(1.0)})
	}
	return s
}

func (s *selector) check() error {
	_, err := machines.New[float32](s.config)
	return err
}

// report converts a host's report into the order of the dimensions; NaN is missing.
func (s *selector) report(m *speculation.Machine) *machines.Report {
	r := &machines.Report{Machine: m.Host, Time: m.Time, CPI: math.NaN(), MPKI: math.NaN()}
	or := func(of map[string]float64, name string) float64 {
		if v, ok := of[name]; ok {
			return v
		}
		return math.NaN()
	}
	for _, name := range s.loads {
		r.Load, r.Capacity = append(r.Load, or(m.Load, name)), append(r.Capacity, or(m.Capacity, name))
	}
	for _, n := range []int{m.Running, m.Waiting, m.Regular} {
		r.Load, r.Capacity = append(r.Load, float64(n)), append(r.Capacity, math.NaN())
	}
	if m.CPI != nil {
		r.CPI = *m.CPI
	}
	if m.MPKI != nil {
		r.MPKI = *m.MPKI
	}
	return r
}

// fleet is the cluster aggregator: it knows the machines and selects the candidates.
type fleet struct {
	selector
	index     *machines.Index[float32]
	publisher *machines.Publisher
	rng       *rand.Rand
	machines  map[string]*fleetMachine
	// the list differs from that of the index
	fresh  bool
	chosen time.Time
	// version is that of the stored list; told is that of the list being stored.
	version, told uint64
}

// fleetMachine is the last known state of one machine.
type fleetMachine struct {
	heard   time.Time
	blocked bool
	first   *speculation.Machine // until the index knows it
}

func newFleet(s selector, life uint64) (*fleet, error) {
	index, err := machines.New[float32](s.config)
	if err != nil {
		return nil, err
	}
	p, err := machines.NewPublisher(life)
	if err != nil {
		return nil, err
	}
	return &fleet{selector: s, index: index, publisher: p, rng: rand.New(rand.NewPCG(life, 1)), machines: map[string]*fleetMachine{}}, nil
}

func (f *fleet) size() int { return len(f.machines) }

// hear stores a report. An invalid one counts as none.
func (f *fleet) hear(now time.Time, m *speculation.Machine) {
	known := f.machines[m.Host]
	if known == nil {
		if len(f.machines) >= mostMachines {
			return
		}
		known = &fleetMachine{first: m}
		f.machines[m.Host], f.fresh = known, true
	}
	known.heard, known.blocked = now, m.Blocked != ""
	if known.first == nil {
		_, _ = f.index.Update(now, f.report(m)) // a refused report counts as silence
	} else {
		known.first = m
	}
}

// choose selects the candidates when due. It returns the message for them, and the list of
// machines if it differs from the stored one.
func (f *fleet) choose(now time.Time) (message, list []byte, err error) {
	if !f.fresh && now.Sub(f.chosen) < chooseEvery {
		return nil, nil, nil
	}
	f.chosen = now
	if err := f.relist(now); err != nil {
		return nil, nil, err
	}
	rule, k := f.rule, int(f.worst*float64(len(f.machines)))
	rule.WorstRated, rule.WorstCPI, rule.WorstMPKI = k, k, k
	f.index.Forgive(now)
	result, err := f.index.Filter(now, rule, f.rng)
	if err != nil {
		return nil, nil, err
	}
	ids := f.index.IDs()
	result.Candidates = slices.DeleteFunc(result.Candidates, func(at uint32) bool { return f.machines[ids[at]].blocked })
	if message, err = f.publisher.Update(ids, result.Candidates); err != nil {
		return nil, nil, err
	}
	if f.told, _ = f.publisher.Versions(); f.told != f.version {
		list = f.publisher.Full()
	}
	return message, list, nil
}

// listed records whether the list was stored.
func (f *fleet) listed(stored bool) {
	if stored {
		f.version = f.told
	}
}

// relist brings the list of the index up to date.
func (f *fleet) relist(now time.Time) error {
	for name, m := range f.machines {
		if now.Sub(m.heard) > machineGone {
			delete(f.machines, name)
			f.fresh = true
		}
	}
	if !f.fresh {
		return nil
	}
	if _, err := f.index.SetMachines(slices.Sorted(maps.Keys(f.machines))); err != nil {
		return err
	}
	f.fresh = false
	for _, m := range f.machines {
		if m.first != nil {
			_, _ = f.index.Update(m.heard, f.report(m.first))
			m.first = nil
		}
	}
	return nil
}

// rate passes on how a job's tasks did on each machine.
func (f *fleet) rate(now time.Time, job string, m *jobs.Manager) {
	counts := m.Counts(job, f.index.Position)
	_ = f.index.Rate(now, job, counts, mostRated) // only of machines that it knows, each once
}
