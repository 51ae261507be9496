package haproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/proctest"
)

// imitation answers as HAProxy 2.6 does on its stats socket.
type imitation struct {
	sync.Mutex
	pid, level string
	limits     map[string]uint32
	// silent has it take commands and answer none; says is what it answers to each.
	silent bool
	says   []byte
	done   chan struct{}
}

// imitate serves one in a socket, with a backend shop of the servers web1 and web2.
func imitate(t *testing.T) (*imitation, string) {
	t.Helper()
	i := &imitation{pid: "100", level: "admin", limits: map[string]uint32{"web1": 0, "web2": 30}, done: make(chan struct{})}
	socket := filepath.Join(proctest.SocketDir(t), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(i.done); l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go i.serve(c)
		}
	}()
	return i, socket
}

func (i *imitation) serve(c net.Conn) {
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return
	}
	i.Lock()
	silent, says := i.silent, i.says
	i.Unlock()
	if silent {
		<-i.done
		return
	}
	if says != nil {
		_, _ = c.Write(says)
		return
	}
	for command := range strings.SplitSeq(strings.TrimSpace(line), ";") {
		_, _ = fmt.Fprint(c, i.answer(command))
	}
}

func (i *imitation) answer(command string) string {
	i.Lock()
	defer i.Unlock()
	var name string
	var n int64
	switch _, err := fmt.Sscanf(command, "set maxconn server shop/%s %d", &name, &n); {
	case command == "show info":
		return "Name: HAProxy\nVersion: 2.6.12\nPid: " + i.pid + "\nnode: vm\nStart_time_sec: 1795959344\n\n"
	case command == "show cli level":
		return i.level + "\n\n"
	case command == "show stat shop 4 -1":
		var b bytes.Buffer
		b.WriteString("# pxname,svname,qcur,slim,sid,check_desc,\n")
		for id, name := range []string{"web1", "web2"} {
			if v, ok := i.limits[name]; ok {
				limit := ""
				if v != 0 {
					limit = strconv.FormatUint(uint64(v), 10)
				}
				fmt.Fprintf(&b, "shop,%s,0,%s,%d,\"a, b\",\n", name, limit, id+1)
			}
		}
		return b.String() + "\n"
	case strings.HasPrefix(command, "show stat "):
		return "No such proxy.\n\n"
	case i.level != "admin":
		return "Permission denied\n\n"
	case err == nil && strings.HasPrefix(command, "set "):
		if _, ok := i.limits[name]; !ok {
			return "No such server.\n\n"
		}
		i.limits[name] = uint32(n)
		return "\n"
	}
	return "Unknown command\n\n"
}

// do changes it.
func (i *imitation) do(change func()) {
	i.Lock()
	defer i.Unlock()
	change()
}

// haproxy is a real one.
type haproxy struct {
	dir, socket string
	command     *exec.Cmd
}

// real starts a HAProxy, or skips. Its backend shop has the servers web1, without a limit, and
// web2 with 30; moving has web1 with minconn 5 and maxconn 50.
func real(t *testing.T) *haproxy {
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
	h := &haproxy{dir: proctest.SocketDir(t)}
	h.socket = filepath.Join(h.dir, "s")
	h.configure(t, 0)
	h.command = exec.Command(path, "-W", "-f", filepath.Join(h.dir, "haproxy.cfg"))
	var said bytes.Buffer
	h.command.Stdout, h.command.Stderr = &said, &said
	if err := h.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.stop(); t.Logf("haproxy said: %s", &said) })
	h.await(t, "", func() {})
	return h
}

// configure writes the file of the next start or reload.
func (h *haproxy) configure(t *testing.T, web1 int) {
	t.Helper()
	text := fmt.Sprintf(`global
  stats socket %[1]s mode 600 level admin expose-fd listeners
  stats socket %[1]s.operator mode 600 level operator
defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
  timeout queue 1s
frontend in
  bind unix@%[1]s.http
  default_backend shop
frontend moving
  bind unix@%[1]s.moving
  default_backend shop
backend shop
  server web1 127.0.0.1:9 maxconn %[2]d
  server web2 127.0.0.1:9 maxconn 30
backend moving
  fullconn 100
  server web1 127.0.0.1:9 minconn 5 maxconn 50
`, h.socket, web1)
	if err := os.WriteFile(filepath.Join(h.dir, "haproxy.cfg"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// await does something until another process than that answers, and returns that one.
func (h *haproxy) await(t *testing.T, other process, again func()) process {
	t.Helper()
	var last error
	for end, n := time.Now().Add(20*time.Second), 0; time.Now().Before(end); n++ {
		if n%50 == 0 {
			again()
		}
		now, err := survey(t.Context(), h.socket, "shop")
		if err == nil && now.of != other {
			return now.of
		}
		last = err
		time.Sleep(20 * time.Millisecond) // a real process starts
	}
	t.Fatalf("no other process than %q came: %v", other, last)
	return ""
}

// reload asks the master each second: one that has just begun loses the signal.
func (h *haproxy) reload(t *testing.T) {
	t.Helper()
	now, err := survey(t.Context(), h.socket, "shop")
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, now.of, func() { _ = h.command.Process.Signal(syscall.SIGUSR2) })
}

// stop ends master and worker.
func (h *haproxy) stop() {
	_ = h.command.Process.Signal(syscall.SIGTERM)
	_ = h.command.Wait()
	_ = os.Remove(h.socket)
}
