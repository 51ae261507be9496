package haproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/trimtab/trimtab/internal/haproxy/haproxytest"
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
	case command == "show stat shop 6 -1":
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

// real starts a HAProxy, or skips. Its backend shop has the servers web1, without a limit, and
// web2 with 30; moving has web1 with minconn 5 and maxconn 50.
func real(t *testing.T) *haproxytest.Program {
	t.Helper()
	return haproxytest.Start(t, "shop", configured(0))
}

// configured is its configuration, with the maxconn of web1.
func configured(web1 int) string {
	return fmt.Sprintf(`global
  stats socket DIR/s mode 600 level admin expose-fd listeners
  stats socket DIR/s.operator mode 600 level operator
defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
  timeout queue 1s
frontend in
  bind unix@DIR/s.http
  default_backend shop
frontend moving
  bind unix@DIR/s.moving
  default_backend shop
backend shop
  server web1 127.0.0.1:9 maxconn %d
  server web2 127.0.0.1:9 maxconn 30
backend moving
  fullconn 100
  server web1 127.0.0.1:9 minconn 5 maxconn 50
`, web1)
}
