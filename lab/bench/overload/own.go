package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// own is what a proxy takes of itself, before an nginx that serves 1 KiB.
type own struct {
	Name string
	// Alone and Many are its CPU time per request in µs, one and manyAtOnce at a time, PerCore the
	// requests that a core of it carries then.
	Alone, Many, PerCore float64
	// Added is what it adds to the median, in ms, one request at a time.
	Added float64
	// Empty and Full are its memory in MiB at first and with manyConnections.
	Empty, Full float64
	// Refused were refused, though the upstream has enough.
	Refused int64
}

// manyAtOnce requests are under way where the proxy is to be busy, manyConnections are open where
// its memory is read.
const manyAtOnce, manyConnections = 32, 5000

// proxies measures what proxies take of themselves.
func (b *bench) proxies(ctx context.Context, dir string) (err error) {
	s, err := openScene(ctx, dir, "nginx", b.Cores)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	meter, err := rig.NewMeter(s.used)
	if err != nil {
		return err
	}
	f := fronts{group: s.proxies, dir: s.dir, trimtab: b.Trimtab, within: b.Within}
	var rows []own
	for _, name := range []string{rowHAProxy, rowPlain, rowGate} {
		if name == rowGate && !has(ctx, b.Trimtab, "gate") {
			fmt.Fprintln(b.out, "this trimtab has no gate")
			continue
		}
		row, err := b.measureOwn(ctx, s, &f, name)
		if err != nil {
			return fmt.Errorf("measure %s: %w", name, err)
		}
		rows = append(rows, row)
	}
	others, _, err := meter.Others()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s; HTTP/1.1 over kept connections before an nginx that serves 1 KiB; others used %.0f%% of the machine\n", rig.DescribeMachine(), 100*others)
	return printOwn(b.out, rows)
}

func printOwn(w io.Writer, rows []own) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "proxy\tCPU µs/req, one at a time\t%d at a time\trequests per core\tof haproxy's\tadded ms\tRSS MiB\tat %d connections\trefused\t\n", manyAtOnce, manyConnections)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.0f\t%.2f\t%.3f\t%.0f\t%.0f\t%d\t\n", r.Name, r.Alone, r.Many, r.PerCore, r.PerCore/rows[0].PerCore, r.Added, r.Empty, r.Full, r.Refused)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

func (b *bench) measureOwn(ctx context.Context, s *scene, f *fronts, name string) (out own, err error) {
	front, err := f.start(ctx, name, s.address, s.small, 0)
	if err != nil {
		return out, err
	}
	defer front.close()
	out = own{Name: name, Empty: mib(front)}
	var alone int64
	if alone, err = s.proxyTime(func() (n int64, err error) {
		out.Added, n, err = pairs(ctx, s.address, front.address, s.small, b.Step)
		return n, err
	}, &out.Alone); err != nil {
		return out, err
	}
	if alone == 0 {
		return out, fmt.Errorf("no request was answered: %w", rig.ErrAnswer)
	}
	if _, err = s.proxyTime(func() (int64, error) {
		n, refused, err := crowd(ctx, front.address, s.small, b.Step)
		out.Refused = refused
		return n, err
	}, &out.Many); err != nil {
		return out, err
	}
	out.PerCore = 1e6 / out.Many
	held, err := hold(ctx, front.address, s.small, manyConnections)
	out.Full = mib(front)
	for _, c := range held {
		c.Close()
	}
	return out, err
}

func mib(f *front) float64 { return float64(f.resident()) / (1 << 20) }

// proxyTime runs something that returns how many requests it sent, and sets the proxy's CPU time
// for each of them, in µs.
func (s *scene) proxyTime(run func() (int64, error), into *float64) (n int64, err error) {
	before, err := s.proxies.Used()
	if err != nil {
		return 0, err
	}
	if n, err = run(); err != nil {
		return 0, err
	}
	after, err := s.proxies.Used()
	*into = (after - before).Seconds() * 1e6 / float64(max(1, n))
	return n, err
}

// line is a connection for one request after the other: less of the machine goes to it than to
// a client of Go's library.
type line struct {
	net.Conn
	in      *bufio.Reader
	request []byte
}

func open(ctx context.Context, address, path string) (*line, error) {
	c, err := rig.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &line{c, bufio.NewReader(c), fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, address)}, nil
}

// ask sends the request and reads its answer to the end.
func (l *line) ask() (status int, err error) {
	if _, err := l.Write(l.request); err != nil {
		return 0, fmt.Errorf("ask: %w", err)
	}
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return resp.StatusCode, nil
}

// pairs sends requests directly and through the proxy in turn, and returns what the proxy adds
// to the median, in ms, and how many went through it.
func pairs(ctx context.Context, direct, through, path string, length time.Duration) (added float64, n int64, err error) {
	var took [2][]float64
	var lines [2]*line
	for k, address := range []string{direct, through} {
		if lines[k], err = open(ctx, address, path); err != nil {
			return 0, 0, err
		}
		defer lines[k].Close()
	}
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; n++ {
		for k, l := range lines {
			from := time.Now()
			status, err := l.ask()
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d: %w", status, rig.ErrAnswer)
			}
			if err != nil {
				return 0, 0, err
			}
			took[k] = append(took[k], ms(time.Since(from)))
		}
	}
	if n == 0 {
		return 0, 0, ctx.Err()
	}
	return median(took[1]) - median(took[0]), n, ctx.Err()
}

// crowd keeps many requests under way, and returns how many were answered and refused.
func crowd(ctx context.Context, address, path string, length time.Duration) (n, refused int64, err error) {
	var sent, no atomic.Int64
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	end := time.Now().Add(length)
	for range manyAtOnce {
		all.Go(func() {
			l, err := open(ctx, address, path)
			for err == nil && time.Now().Before(end) && ctx.Err() == nil {
				var status int
				if status, err = l.ask(); status != http.StatusOK {
					no.Add(1)
				}
				sent.Add(1)
			}
			if l != nil {
				l.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	all.Wait()
	return sent.Load(), no.Load(), errors.Join(failed, ctx.Err())
}

// hold opens connections of which each has had an answer, and leaves them open.
func hold(ctx context.Context, address, path string, n int) (out []*line, err error) {
	for range n {
		l, err := open(ctx, address, path)
		if err != nil {
			return out, err
		}
		out = append(out, l)
		if _, err := l.ask(); err != nil {
			return out, err
		}
	}
	return out, ctx.Err()
}

func median(in []float64) float64 {
	slices.Sort(in)
	return in[len(in)/2]
}
