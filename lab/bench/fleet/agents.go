package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/pause"
)

// cast is what the process that plays the agents is told, as JSON in a file.
type cast struct {
	Site, Journals string // directories
	URL, Leaf      string
	Agents, Leaves int
	// Workloads have so many Instances each.
	Workloads, Instances int
	Report               time.Duration
	MaxLease, Within     time.Duration
	// Colocate says that the real agent has best-effort jobs beside its service.
	Colocate bool
}

// workloadName is also the name of its knob's place.
func workloadName(i int) string { return fmt.Sprintf("w%05d", i) }

func hostName(i int) string { return fmt.Sprintf("h%04d", i) }

// hostOf is where an instance of workload i is: of those whose first instances are
// on one host the second ones are on different hosts, as far as there are enough.
func hostOf(i, instance, agents int) int {
	return (i + instance*(1+i/agents%max(1, agents-1))) % agents
}

// opening is how many agents connect at a time, reopenings how often each tries.
const opening, reopenings = 8, 20

// playAgents opens all agents, says so in a line, and answers each line that it
// reads: "begin" by nothing, "report" by a [report] since then. It ends with its
// input.
func playAgents(ctx context.Context, file string) error {
	stop, err := profiled()
	if err != nil {
		return err
	}
	defer stop()
	var c cast
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return fmt.Errorf("read what to play: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &play{cast: c, metrics: metric.NewSet(), log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), tally: newTally(c.Agents, c.Within)}
	for i := range c.Workloads {
		var instances []*knob
		for range c.Instances {
			instances = append(instances, newKnob(workloadName(i)))
		}
		p.knobs = append(p.knobs, instances)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "begin":
			p.tally.begin(time.Now())
		case "report":
			if err := json.NewEncoder(os.Stdout).Encode(p.tally.report(time.Now())); err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
	}
	cancel()
	p.running.Wait()
	return lines.Err()
}

// play is all agents.
type play struct {
	cast
	metrics *metric.Set
	log     *slog.Logger
	tally   *tally
	knobs   [][]*knob // by workload and instance
	running sync.WaitGroup
}

// open opens each agent and the collector, whose work then goes on until ctx ends.
func (p *play) open(ctx context.Context) error {
	hosts, failed := make(chan int), make(chan error, p.Agents)
	var workers sync.WaitGroup
	for range opening {
		workers.Go(func() {
			for h := range hosts {
				if err := p.openAgent(ctx, h); err != nil {
					failed <- fmt.Errorf("open agent %s: %w", hostName(h), err)
				}
			}
		})
	}
	for h := range p.Agents {
		hosts <- h
	}
	close(hosts)
	workers.Wait()
	close(failed)
	for err := range failed {
		return err
	}
	if err := p.openCollector(ctx); err != nil || !p.Colocate {
		return err
	}
	return p.openAnalyzer(ctx)
}

// connect opens a bus with the certificate in a directory of the site.
func (p *play) connect(ctx context.Context, dir string, c natsbus.Config) (*natsbus.Bus, error) {
	at := filepath.Join(p.Site, dir)
	c.URL, c.CA, c.Cert, c.Key = p.URL, filepath.Join(at, "ca.pem"), filepath.Join(at, "cert.pem"), filepath.Join(at, "key.pem")
	c.Logger = p.log
	return natsbus.Open(ctx, c)
}

func (p *play) openAgent(ctx context.Context, h int) error {
	host := hostName(h)
	c := natsbus.Config{Source: host + " agent", Role: natsbus.Agent, Host: host, Pool: pool}
	if h < p.Leaves {
		c.Leaf = p.Leaf
	}
	b, err := p.connect(ctx, "agent-"+host, c)
	for tries := 1; err != nil && tries < reopenings && pause.For(ctx, time.Second); tries++ { // as systemd would
		p.log.Warn("agent is opened again", "host", host, "err", err)
		b, err = p.connect(ctx, "agent-"+host, c)
	}
	if err != nil {
		return err
	}
	a := actuator.Config{
		Host: host, Pool: pool, Dir: filepath.Join(p.Journals, host), Shared: true, Reopen: reopen, JournalSize: 64 << 10, KeepOnStop: true, Repeat: actuator.RepeatOf(p.MaxLease),
		Limits:  actuator.Limits{MaxLease: p.MaxLease, Fall: 0.5, Share: 0.5},
		Metrics: p.metrics, Logger: p.log,
	}
	var mine []int
	for i, instances := range p.knobs {
		for n, k := range instances {
			if hostOf(i, n, p.Agents) != h {
				continue
			}
			mine = append(mine, i)
			k.host = host
			a.Targets = append(a.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: k.workload, Resource: trimtab.CPU}, Knob: k, Min: leastCores, Max: mostCores, Mode: trimtab.Act})
		}
	}
	act, err := actuator.Open(ctx, a)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	p.running.Go(func() {
		defer func() { _ = b.Close() }() // it ends
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		p.running.Go(func() { p.sampleUse(ctx, b, h, mine) })
		err := act.Run(ctx, &watched{b, p.tally})
		if err = errors.Join(err, act.Close(context.WithoutCancel(ctx))); err != nil {
			p.log.Error("agent ended", "host", host, "err", err)
		}
	})
	return nil
}

// every calls f at each interval, from a time on that differs by part, in [0, 1).
func every(ctx context.Context, interval time.Duration, part float64, f func(now time.Time)) {
	first := time.NewTimer(time.Duration(part * float64(interval)))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		f(time.Now().Round(0).UTC())
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// sampleUse publishes what the cgroups of one host would tell.
func (p *play) sampleUse(ctx context.Context, b *natsbus.Bus, h int, mine []int) {
	host := hostName(h)
	random := rand.New(rand.NewPCG(1, uint64(h)))
	every(ctx, p.Report, float64(h)/float64(p.Agents), func(now time.Time) {
		for _, i := range mine {
			for _, k := range p.knobs[i] {
				if a := k.cores(); k.host == host {
					p.publish(ctx, b, observe(i, a, now, p.Report, random).ofAgent(k, a, now, p.Report))
				}
			}
		}
	})
}

// parts is in how many parts the collector publishes an interval.
const parts = 20

// openCollector publishes what a collector would read from Prometheus.
func (p *play) openCollector(ctx context.Context) error {
	b, err := p.connect(ctx, "collector", natsbus.Config{Source: "fleet collector", Role: natsbus.Collector})
	if err != nil {
		return fmt.Errorf("open collector: %w", err)
	}
	random := rand.New(rand.NewPCG(2, 3))
	at := 0
	p.running.Go(func() {
		defer func() { _ = b.Close() }() // it ends
		every(ctx, p.Report/parts, 0, func(now time.Time) {
			for i := at; i < len(p.knobs); i += parts {
				var all observation
				for _, k := range p.knobs[i] {
					all = all.and(observe(i, k.cores(), now, p.Report, random))
				}
				p.publish(ctx, b, all.ofCollector(i, now, p.Report))
			}
			at = (at + 1) % parts
		})
	})
	return nil
}

func (p *play) publish(ctx context.Context, b *natsbus.Bus, samples []*trimtab.Sample) {
	for _, s := range samples {
		if err := b.Publish(ctx, s); err != nil && ctx.Err() == nil {
			p.log.Warn("publish sample", "workload", s.Workload, "err", err)
		}
	}
}
