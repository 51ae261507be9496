//go:build linux

package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/internal/metric"
)

// Source is the name of this source of spans in metrics.
const Source = "kernel"

// DefaultSettle is the default time after its last byte at which an answer counts as complete.
const DefaultSettle = 200 * time.Millisecond

// Component is a group of processes that is traced as one service.name.
type Component struct {
	Name string
	// Program is the name of its processes, as ps shows it, of which the kernel
	// keeps 15 bytes; Cgroup is a group that they are in, or below. If both are set,
	// a process must match both.
	Program, Cgroup string
}

// Config says what to trace.
type Config struct {
	Sink       *collector.Sink
	Host       string
	Components []Component
	// Settle is the time after its last byte at which an answer counts as complete; 0:
	// DefaultSettle.
	Settle  time.Duration
	Metrics *metric.Set
	// Logger may be nil.
	Logger *slog.Logger
}

// Collector traces the components of one host.
type Collector struct {
	config    Config
	from      *collector.Source
	resources []*collector.Resource
	probe     *probe
	processes *processes
	tracer    *Tracer
	packer    *collector.Packer
	// wall is the difference between Unix time and the monotonic clock.
	wall    int64
	dropped uint64
}

// Open attaches to the kernel. Its error is trimtab.ErrUnsupported where that is not
// possible, and says why.
func Open(c Config) (*Collector, error) {
	if c.Sink == nil || c.Metrics == nil {
		return nil, trimtab.Invalidf("trace sockets: no sink or no metrics")
	}
	for _, of := range c.Components {
		if of.Name == "" || of.Program == "" && of.Cgroup == "" {
			return nil, trimtab.Invalidf("trace sockets: component %q: want a name, and a program or a cgroup", of.Name)
		}
	}
	if c.Settle <= 0 {
		c.Settle = DefaultSettle
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	p, err := attach()
	if err != nil {
		return nil, err
	}
	t := &Collector{config: c, from: c.Sink.Source(Source), probe: p, processes: newProcesses(c.Components)}
	for _, of := range c.Components {
		t.resources = append(t.resources, collector.NewResource([]trimtab.Attr{
			{Key: "service.name", Value: of.Name}, {Key: "host.name", Value: c.Host},
		}))
	}
	t.packer = t.from.Packer()
	t.tracer = NewTracer(int64(c.Settle), rand.Uint64(), t.processes.listens, t.emit)
	return t, nil
}

// Close removes everything from the kernel. Run must have returned.
func (c *Collector) Close() error { return c.probe.close() }

func (c *Collector) emit(v *Visit) {
	c.packer.SetResource(c.resources[v.Component])
	s := v.Span
	s.Start, s.End = s.Start+c.wall, s.End+c.wall
	c.packer.Add(&s)
}

const (
	// flushEvery is how often ended visits are sent; lookEvery is how often processes are listed.
	flushEvery = 100 * time.Millisecond
	lookEvery  = 5 * time.Second
)

// Run traces until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	packed := make(chan *collector.Packer, 1)
	defer close(packed)
	sending.Go(func() {
		for p := range packed {
			if err := c.from.Send(ctx, p); err != nil {
				c.config.Logger.Debug("spans of the kernel were not taken", "cause", err)
			}
			c.from.Recycle(p)
		}
	})
	var looked time.Time
	for ctx.Err() == nil {
		if now := time.Now(); now.Sub(looked) >= lookEvery {
			looked = now
			c.look()
		}
		if err := c.read(); err != nil {
			return err
		}
		c.flush(packed)
	}
	return nil
}

// read reads events for flushEvery.
func (c *Collector) read() error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	c.wall = time.Now().UnixNano() - now
	c.probe.reader.SetDeadline(time.Now().Add(flushEvery))
	var record ringbuf.Record
	for begun := time.Now(); time.Since(begun) < flushEvery; {
		err := c.probe.reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return fmt.Errorf("trace sockets: %w", err)
		}
		e, err := parse(record.RawSample)
		if err != nil {
			continue
		}
		if component, ok := c.processes.of(e.Process); ok {
			c.tracer.Add(component, &e)
		}
	}
	if now, err = monotonic(); err != nil {
		return err
	}
	c.tracer.Settle(now)
	return nil
}

// flush sends ended visits. While the last batch is not answered, it waits; beyond a bound it drops
// visits.
func (c *Collector) flush(packed chan<- *collector.Packer) {
	if n := c.packer.Spans(); n > 0 {
		select {
		case packed <- c.packer:
			c.packer = c.from.Packer()
		default:
			if n > maxWaiting {
				c.config.Metrics.Counter("trimtab_collector_kernel_dropped_total", "spans").Add(float64(n))
				c.packer.Reset()
			}
		}
	}
}

// maxWaiting bounds the spans that wait to be sent.
const maxWaiting = 100_000

// look updates the list of processes, here and in the kernel, and counts lost events.
func (c *Collector) look() {
	came, went := c.processes.look()
	for _, pid := range went {
		_ = c.probe.watched.Delete(pid) // the entry may not exist
	}
	for _, pid := range came {
		component, _ := c.processes.of(pid)
		if err := c.probe.watched.Put(pid, uint32(component)); err != nil {
			c.config.Logger.Warn("process is not traced", "pid", pid, "component", c.config.Components[component].Name, "cause", err)
			c.processes.forget(pid) // and tried again
		}
	}
	if n, err := c.probe.dropped(); err == nil && n > c.dropped {
		c.config.Metrics.Counter("trimtab_collector_kernel_dropped_total", "events").Add(float64(n - c.dropped))
		c.dropped = n
	}
}

// monotonic is the clock of the events.
func monotonic() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read monotonic clock: %w", err)
	}
	return t.Nano(), nil
}
