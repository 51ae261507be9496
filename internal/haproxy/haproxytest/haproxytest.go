// Package haproxytest runs a real HAProxy for tests, and skips them where none is installed.
package haproxytest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/proctest"
)

// Program is a HAProxy with a master and a worker.
type Program struct {
	// Dir is its directory, in which Socket is; Backend is one of its backends.
	Dir, Socket, Backend string
	command              *exec.Cmd
}

// Front is a configuration up to its backend, called shop, whose lines follow it.
const Front = `global
  stats socket DIR/s mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
frontend in
  bind unix@DIR/http
  default_backend shop
`

// Start starts a HAProxy with a configuration in which DIR stands for its directory, and waits until
// it answers. Its socket is DIR/s, which the configuration must have.
func Start(t *testing.T, backend, text string) *Program {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		for _, path = range []string{"/usr/sbin/haproxy", "/usr/local/sbin/haproxy"} {
			if _, err = os.Stat(path); err == nil {
				break
			}
		}
	}
	if err != nil {
		t.Skip("no haproxy is installed")
	}
	p := &Program{Dir: proctest.SocketDir(t), Backend: backend}
	p.Socket = filepath.Join(p.Dir, "s")
	p.Configure(t, text)
	p.command = exec.Command(path, "-W", "-f", p.file())
	var said bytes.Buffer
	p.command.Stdout, p.command.Stderr = &said, &said
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(); t.Logf("haproxy said: %s", &said) })
	p.await(t, "", func() {})
	return p
}

func (p *Program) file() string { return filepath.Join(p.Dir, "haproxy.cfg") }

// Path replaces DIR in a text.
func (p *Program) Path(text string) string { return strings.ReplaceAll(text, "DIR", p.Dir) }

// Put writes a file beside the configuration.
func (p *Program) Put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Configure writes the configuration of the next start or reload.
func (p *Program) Configure(t *testing.T, text string) {
	t.Helper()
	p.Put(t, "haproxy.cfg", p.Path(text))
}

// await waits until another process than that answers, and asks again each second.
func (p *Program) await(t *testing.T, other haproxy.Process, again func()) {
	t.Helper()
	var last error
	for end, n := time.Now().Add(20*time.Second), 0; time.Now().Before(end); n++ {
		if n%50 == 0 {
			again()
		}
		now, err := haproxy.Look(t.Context(), p.Socket, p.Backend)
		if err == nil && now.Of != other {
			return
		}
		last = err
		time.Sleep(20 * time.Millisecond) // a real process starts
	}
	t.Fatalf("no other process than %q came: %v", other, last)
}

// Reload has the master begin a new worker: one that has just begun loses the signal.
func (p *Program) Reload(t *testing.T) {
	t.Helper()
	now, err := haproxy.Look(t.Context(), p.Socket, p.Backend)
	if err != nil {
		t.Fatal(err)
	}
	p.await(t, now.Of, func() { _ = p.command.Process.Signal(syscall.SIGUSR2) })
}

// Stop ends master and worker.
func (p *Program) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
	_ = os.Remove(p.Socket)
}
