package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// place is where the services run, with the knob that sizes them. Read may be called at any time,
// the other methods by one goroutine.
type place interface {
	// Knob is KnobCgroup or KnobProcess.
	Knob() string
	// Root is the directory that handles are relative to.
	Root() string
	// Add starts a service at its equal share and sets its Handle.
	Add(ctx context.Context, s *Service) error
	// Has returns the allocation in force, Read the limit that is set, without which it
	// fails; Set changes it, as trimtab does.
	Has(ctx context.Context, s *Service) (float64, error)
	Read(ctx context.Context, s *Service) (float64, error)
	Set(ctx context.Context, s *Service, amount float64) error
	// Close ends all processes and removes the groups that Add made.
	Close() error
}

// sharing is a place in which the kernel can share the pool by itself.
type sharing interface {
	// Release removes the services' own quotas, so that one quota of the pool's size on the group
	// above and equal weights remain; Bind restores their equal shares, and removes that quota.
	Release(ctx context.Context) error
	Bind(ctx context.Context) error
}

// knob is the knob of one service.
type knob interface {
	actuator.Knob
	io.Closer
}

// turned has the knob of each service.
type turned map[string]knob

// Has returns the allocation in force: the limit.
func (t turned) Has(ctx context.Context, s *Service) (float64, error) { return t.Read(ctx, s) }

// Read returns the limit that is set.
func (t turned) Read(ctx context.Context, s *Service) (float64, error) {
	a, err := t[s.Name].Read(ctx)
	if err != nil {
		return 0, err
	}
	if a.Unlimited {
		return 0, fmt.Errorf("read allocation of %s: unlimited: %w", s.Name, trimtab.ErrStale)
	}
	return a.Value, nil
}

// Set writes the allocation.
func (t turned) Set(ctx context.Context, s *Service, amount float64) error {
	return t[s.Name].Write(ctx, trimtab.Units(amount))
}

func (t turned) close() error {
	var failed []error
	for _, k := range t {
		failed = append(failed, k.Close())
	}
	clear(t)
	return errors.Join(failed...)
}

// Launcher starts the processes of services. All of them die with this
// process, even when it is killed.
type Launcher struct {
	// Self is the command that runs a service: its arguments follow.
	Self []string
	// Stderr of the processes; nil: none.
	Stderr *os.File
	// Failed is called, when not nil, if a process ends by itself.
	Failed func(error)

	mu       sync.Mutex
	children []*child
	closed   bool
}

// child is one running process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start runs one component and returns its process id. procs is how many
// threads may run Go code at a time.
func (l *Launcher) Start(args []string, procs int) (int, error) {
	cmd := exec.Command(l.Self[0], append(append([]string(nil), l.Self[1:]...), args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs))
	if l.Stderr != nil {
		cmd.Stderr = l.Stderr
	}
	// Setpgid keeps the terminal's Ctrl-C for us: we end them in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, fmt.Errorf("start %s: %w", args[0], os.ErrClosed)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start service: %w", err)
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	l.children = append(l.children, c)
	go func() {
		err := cmd.Wait()
		close(c.done)
		l.mu.Lock()
		ours := l.closed
		l.mu.Unlock()
		if !ours && l.Failed != nil {
			l.Failed(fmt.Errorf("service %s ended by itself: %w", args[0], errors.Join(err, errEnded)))
		}
	}()
	return cmd.Process.Pid, nil
}

var errEnded = errors.New("process is gone")

// Close asks all processes to end, kills those that do not within 3 s, and
// returns when all are gone.
func (l *Launcher) Close() {
	l.mu.Lock()
	l.closed = true
	children := l.children
	l.mu.Unlock()
	for _, c := range children {
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // on an error the process is gone
	}
	patience := time.NewTimer(3 * time.Second)
	defer patience.Stop()
	for _, c := range children {
		select {
		case <-c.done:
		case <-patience.C:
			for _, c := range children {
				_ = c.cmd.Process.Kill()
			}
			<-c.done
		}
	}
}

// address gives every component a free address and the addresses of those that it calls.
func (s *Setup) address(from *addresses) error {
	for _, svc := range s.Services {
		for i := range svc.Components {
			a, err := from.free()
			if err != nil {
				return err
			}
			svc.Components[i].Listen, svc.Components[i].OTLP = a, s.OTLP
		}
		if len(svc.Components) < 2 {
			continue
		}
		front, stock := &svc.Components[0], &svc.Components[1]
		front.Calls = "http://" + stock.Listen + "/"
		if s.Knob == KnobCgroup {
			// Workers that all wait for the call could not answer the call back.
			stock.Calls = "http://" + front.Listen + "/leaf"
		}
	}
	return nil
}

// awaitReady polls the component's health until it answers.
func awaitReady(ctx context.Context, listen string) error {
	transport := &http.Transport{DisableKeepAlives: true}
	return await(ctx, listen, func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+"/healthz", nil)
		if err != nil {
			return false
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// await polls done, for a minute.
func await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}
