package main

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listeners returns the addresses that a process listens on, by the kernel's
// word.
func listeners(t *testing.T, pid int) (out []string) {
	t.Helper()
	inodes := map[string]bool{}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if n, ok := strings.CutPrefix(to, "socket:["); ok {
			inodes[strings.TrimSuffix(n, "]")] = true
		}
	}
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			// 0A is a TCP socket that listens, 07 a UDP socket that is bound.
			if len(f) > 9 && (f[3] == "0A" || f[3] == "07") && inodes[f[9]] {
				out = append(out, address(t, f[1]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// address reads the kernel's form of one: words of 4 bytes, lowest byte first.
func address(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	var n int
	if _, err := fmt.Sscanf(port, "%x", &n); err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(raw).String(), fmt.Sprint(n))
}

func TestOnlyLoopbackIsListenedOnByDefault(t *testing.T) {
	t.Run("run without any file", func(t *testing.T) {
		for _, address := range []string{"127.0.0.1:9600", "127.0.0.1:4317", "127.0.0.1:4318", "127.0.0.1:14250"} {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Skipf("a default port is in use: %v", err)
			}
			l.Close()
		}
		p := prepare(t, fixtureQuotas(t), "")
		p.web = "127.0.0.1:9600"
		p.launch("run", "--storage.path", p.storage())
		p.becomesReady()
		p.onlyLoopback(4)
	})
	t.Run("run with a pool, knobs and an open bus", func(t *testing.T) {
		p := prepare(t, fixtureQuotas(t), "")
		p.start()
		p.onlyLoopback(5)
	})
}

// onlyLoopback fails when the program or a child listens elsewhere, or on
// fewer addresses than it must.
func (p *program) onlyLoopback(atLeast int) {
	p.Helper()
	var all []string
	for _, pid := range append(children(p.cmd.Process.Pid), p.cmd.Process.Pid) {
		all = append(all, listeners(p.T, pid)...)
	}
	p.Log(all)
	if len(all) < atLeast {
		p.Errorf("listens on %v, want at least %d", all, atLeast)
	}
	for _, a := range all {
		host, _, err := net.SplitHostPort(a)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			p.Errorf("listens on %s", a)
		}
	}
}

// children returns the processes below pid.
func children(pid int) (out []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			var child int
			if _, err := fmt.Sscan(s, &child); err == nil {
				out = append(append(out, child), children(child)...)
			}
		}
	}
	return out
}
