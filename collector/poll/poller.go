package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

// reportKey identifies what a sample measures.
type reportKey struct {
	workload, host, instance, source string
	quantity                         quantity.Quantity
}

// Poller reads one source at an interval.
type Poller struct {
	source  Source
	config  Config
	reader  Reader
	targets []hostfs.Follower
	// reported has the values of the last round, each with the reason if it was missing.
	reported map[reportKey]string
	// published has what a Prompt source published last.
	published   map[reportKey]trimtab.Sample
	unavailable []string
	// problems has, by index of target, why its group cannot be found; at -1, why the source cannot
	// be read.
	problems map[int]string
}

// Open opens a source on this host.
func Open(s Source, c Config) (*Poller, error) {
	if c.Bus == nil || c.Host == "" {
		return nil, trimtab.Invalidf("read %s of host %q: want a bus and a name", s.Name, c.Host)
	}
	Fill(&c.Interval, s.Interval, &c.Metrics, &c.Logger)
	p := &Poller{source: s, reported: map[reportKey]string{}, problems: map[int]string{}}
	var err error
	if len(c.Targets) > 0 && c.Root != "" {
		if c.Groups, err = hostfs.OpenRoot(c.Root); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Name, err)
		}
		for _, t := range c.Targets {
			p.targets = append(p.targets, hostfs.Follower{Path: t.Path})
		}
	}
	p.config = c
	if p.reader, err = s.Open(c); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, errors.Join(err, p.closeGroups()))
	}
	p.unavailable = p.reader.Unavailable()
	c.Metrics.Counter(counter, s.Name, "ok")
	return p, nil
}

// nowhere discards samples.
type nowhere struct{}

func (nowhere) Publish(context.Context, trimtab.Value) error { return nil }

// Probe returns what this host lacks for a source. It reads no samples.
func Probe(s Source, c Config) (lacks []string, err error) {
	c.Bus = nowhere{}
	p, err := Open(s, c)
	if errors.Is(err, trimtab.ErrUnsupported) {
		return []string{err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	return p.Unavailable(), p.Close()
}

// counter is the metric that counts samples by source and by the reason why their value is missing.
const counter = "trimtab_collector_samples_total"

// Unavailable lists the parts of the source that this host does not have, as of the last round.
func (p *Poller) Unavailable() []string { return p.unavailable }

// Close releases the source and the control groups.
func (p *Poller) Close() error { return errors.Join(p.reader.Close(), p.closeGroups()) }

func (p *Poller) closeGroups() error {
	if p.config.Groups == nil {
		return nil
	}
	return p.config.Groups.Close()
}

// Run polls until ctx ends, and reads a group early when its reader is told to.
func (p *Poller) Run(ctx context.Context) error {
	w, ok := p.reader.(Waker)
	if !ok || p.config.Seen == nil {
		return Every(ctx, p.config.Interval, p.Round)
	}
	return every(ctx, p.config.Interval, p.Round, w.Woken(), func(path string) {
		if g, all := w.Early(path); len(all) > 0 {
			p.config.Seen([]Group{g}, all)
		}
	})
}

// Every calls round now and at each interval until ctx ends.
func Every(ctx context.Context, interval time.Duration, round func(context.Context)) error {
	return every(ctx, interval, round, nil, nil)
}

func every(ctx context.Context, interval time.Duration, round func(context.Context), woken <-chan string, early func(string)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	round(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			round(ctx)
		case path := <-woken:
			early(path)
		}
	}
}

// Round reads the source once and publishes the samples.
func (p *Poller) Round(ctx context.Context) {
	groups := p.find()
	all, err := p.reader.Read(ctx, groups)
	if ctx.Err() != nil && len(all) == 0 {
		return
	}
	p.note(-1, err)
	if p.config.Seen != nil && p.source.Prompt {
		p.config.Seen(groups, all)
	}
	if lacks := p.reader.Unavailable(); !slices.Equal(lacks, p.unavailable) {
		if p.unavailable = lacks; p.config.Unavailable != nil {
			p.config.Unavailable(lacks)
		}
	}
	now := map[reportKey]string{}
	for _, s := range all {
		s.Source = cmp.Or(s.Source, p.source.Name)
		if s.Workload == trimtab.HostItself {
			s.Host = p.config.Host
		}
		if s.Missing != "" {
			s.Value, s.Window = 0, 0
		}
		now[reportKey{s.Workload, s.Host, s.Instance, s.Source, s.Quantity}] = s.Missing
	}
	for k, missing := range p.reported {
		why := Absent
		if err != nil {
			why = Unreadable
		}
		if _, still := now[k]; still || missing == Absent || k.workload == trimtab.HostItself && k.instance == "" {
			continue
		}
		all = append(all, &trimtab.Sample{Workload: k.workload, Host: k.host, Instance: k.instance, Source: k.source, Quantity: k.quantity, Missing: why})
		if err != nil {
			now[k] = why
		}
	}
	at := time.Now().Round(0).UTC()
	for _, s := range all {
		if s.Time.IsZero() {
			s.Time = at
		}
		if p.repeats(s) {
			continue
		}
		Publish(ctx, p.config.Bus, p.config.Metrics, p.config.Logger, s, counter, p.source.Name)
	}
	p.reported = now
}

const (
	// repeatEvery is how often a Prompt source publishes a value that hardly changes: half of the age up
	// to which an analyzer uses one.
	repeatEvery = 5 * time.Second
	// hardly is the largest change of an amount, as a part of it, that need not be told at once.
	hardly = 1.0 / 512
)

// repeats reports whether a sample of a Prompt source tells what was published less than repeatEvery
// ago: the same reason why a value is missing, no event, or nearly the same amount.
func (p *Poller) repeats(s *trimtab.Sample) bool {
	every := cmp.Or(p.config.Repeat, repeatEvery)
	if !p.source.Prompt || every < 0 {
		return false
	}
	k := reportKey{s.Workload, s.Host, s.Instance, s.Source, s.Quantity}
	last, ok := p.published[k]
	same := ok && s.Missing == last.Missing && (s.Window > 0) == (last.Window > 0) && math.Abs(s.Value-last.Value) <= hardly*last.Value
	if same && (s.Window == 0 || s.Value == 0) && s.Time.Sub(last.Time) < every-p.config.Interval/2 && !s.Time.Before(last.Time) {
		return true
	}
	if p.published == nil {
		p.published = map[reportKey]trimtab.Sample{}
	}
	if p.published[k] = *s; s.Missing == Absent {
		delete(p.published, k)
	}
	return false
}

// find returns the control groups of all targets that exist now.
func (p *Poller) find() (groups []Group) {
	for i := range p.targets {
		found, err := p.targets[i].Look(p.config.Groups)
		p.note(i, err)
		for _, f := range found {
			groups = append(groups, Group{p.config.Targets[i].Workload, p.config.Targets[i].Host, f})
		}
	}
	return groups
}

// note logs when the error of a target, or of the source, changes.
func (p *Poller) note(i int, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == p.problems[i] {
		return
	}
	p.problems[i] = problem
	of := p.source.Name
	if i >= 0 {
		of = p.config.Targets[i].Workload
	}
	p.config.Logger.Info("read "+p.source.Name, "of", of, "problem", problem)
}

// Publish publishes a sample, and counts it by the given labels and by the reason why its value is
// missing. An error is only logged: a newer sample will replace a lost one.
func Publish(ctx context.Context, bus Publisher, metrics *metric.Set, logger *slog.Logger, s *trimtab.Sample, counter string, labels ...string) {
	result := "ok"
	if s.Missing != "" {
		result = s.Missing
	}
	metrics.Counter(counter, append(labels, result)...).Inc()
	if err := bus.Publish(ctx, s); err != nil && ctx.Err() == nil {
		logger.Warn("publish sample", "workload", s.Workload, "source", s.Source, "err", err)
	}
}
