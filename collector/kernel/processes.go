package kernel

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// processes knows which are watched, and where they listen.
type processes struct {
	components []Component
	known      map[uint32]int
	// listening are the ports of a network namespace, by its name in /proc.
	listening map[string]*ports
	// names are the network namespaces of processes.
	names map[uint32]string
}

type ports struct {
	read time.Time
	open map[uint16]bool
}

func newProcesses(components []Component) *processes {
	return &processes{components: components, known: map[uint32]int{}, listening: map[string]*ports{}, names: map[uint32]string{}}
}

// of returns the component of a process.
func (p *processes) of(pid uint32) (component int, ok bool) {
	component, ok = p.known[pid]
	return component, ok
}

func (p *processes) forget(pid uint32) {
	delete(p.known, pid)
	delete(p.names, pid)
}

// look lists all processes again, and returns the new and the ended ones.
func (p *processes) look() (came, went []uint32) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil // nothing changed
	}
	seen := map[uint32]bool{}
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil {
			continue
		}
		pid := uint32(n)
		component, ok := p.match(e.Name())
		if !ok {
			continue
		}
		seen[pid] = true
		if was, known := p.known[pid]; !known || was != component {
			p.known[pid] = component
			came = append(came, pid)
		}
	}
	for pid := range p.known {
		if !seen[pid] {
			went = append(went, pid)
			p.forget(pid)
		}
	}
	if len(went) > 0 {
		clear(p.listening)
	}
	return came, went
}

// match returns the first component that a process is of.
func (p *processes) match(pid string) (int, bool) {
	comm, err := os.ReadFile("/proc/" + pid + "/comm")
	if err != nil {
		return 0, false // the process has ended
	}
	program := strings.TrimSuffix(string(comm), "\n")
	for i, c := range p.components {
		if c.Program != "" && clip(c.Program) != program {
			continue
		}
		if c.Cgroup == "" || within(pid, c.Cgroup) {
			return i, true
		}
	}
	return 0, false
}

// clip cuts a program's name to the length that the kernel keeps.
func clip(program string) string { return program[:min(len(program), 15)] }

// within reports whether a process is in a group, or below it, in any hierarchy.
func within(pid, group string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return false
	}
	want := "/" + strings.Trim(group, "/") + "/"
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 && strings.HasPrefix(parts[2]+"/", want) {
			return true
		}
	}
	return false
}

// relisten is the age of the list of listening ports from which it is read again when a port is not
// in it.
const relisten = 100 * time.Millisecond

// listens reports whether a process in the same network namespace listens on a port.
func (p *processes) listens(pid uint32, port uint16) bool {
	name, ok := p.names[pid]
	if !ok {
		var err error
		if name, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
			return false
		}
		p.names[pid] = name
	}
	at := p.listening[name]
	if at == nil || !at.open[port] && time.Since(at.read) > relisten {
		at = &ports{read: time.Now(), open: map[uint16]bool{}}
		for _, table := range []string{"tcp", "tcp6"} {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table)); err == nil {
				listening(text, at.open)
			}
		}
		p.listening[name] = at
	}
	return at.open[port]
}

// listening reads the ports that are listened on from a table of sockets, in which a
// line is "sl local_address rem_address st …", in hexadecimal.
func listening(table []byte, open map[uint16]bool) {
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[3] != "0A" {
			continue
		}
		_, port, ok := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(port, 16, 16); ok && err == nil {
			open[uint16(n)] = true
		}
	}
}
