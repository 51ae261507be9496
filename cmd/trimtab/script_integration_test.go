//go:build integration

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// script is deploy/examples/cluster.sh while it runs.
type script struct {
	*testing.T
	cmd *exec.Cmd
	dir string
	mu  sync.Mutex
	out bytes.Buffer
	// run is the number in its names, net the first three bytes of its addresses,
	// group the cgroup with one below it for each host.
	run, net, group string
	ended           chan error
}

func (s *script) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *script) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

func startScript(t *testing.T) *script {
	t.Helper()
	s := &script{T: t, dir: filepath.Join(t.TempDir(), "site"), ended: make(chan error, 1)}
	s.cmd = exec.Command("../../deploy/examples/cluster.sh", "--trimtab", os.Args[0], "--dir", s.dir)
	s.cmd.Stdout, s.cmd.Stderr = s, s
	// With the flags of the Makefile the nats-server that it builds is compiled already.
	s.cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -gcflags=all=-dwarf=false -ldflags=-s")
	s.cmd.WaitDelay = time.Minute
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { s.end() })
	for {
		out := s.said()
		if m := regexp.MustCompile(`console: http://([\d.]+)\.21:9600.*\n.*quotas: (\S+)/h1 to h3\n.*ip link set tt(\d+)-h1`).FindStringSubmatch(out); m != nil {
			s.net, s.group, s.run = m[1], m[2], m[3]
			return s
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			if strings.Contains(out, "cluster.sh: missing:") {
				t.Skip(out)
			}
			t.Fatalf("the script ended: %v\n%s", err, s.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end ends it as Ctrl-C does, which a test that runs in the background may have
// been told to ignore.
func (s *script) end() {
	s.Helper()
	if s.ended == nil {
		return
	}
	if s.Failed() {
		logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
		for _, file := range logs {
			b, _ := os.ReadFile(file)
			s.Logf("%s: …%s", filepath.Base(file), b[max(0, len(b)-6000):])
		}
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ended
	s.ended = nil
	s.Log(s.said())
}

// process is one of them, to be asked from outside.
func (s *script) process(role, host string) *program {
	last := map[string]string{"c1": "21", "c2": "22", "h1": "31", "h2": "32", "h3": "33"}[host]
	port := map[string]string{"console": "9600", "planner": "9601", "analyzer": "9602", "collector": "9603", "agent": "9604"}[role]
	return &program{T: s.T, dir: s.dir, web: s.net + "." + last + ":" + port}
}

// kill is kill -9, of a process by its name.
func (s *script) kill(name string) {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "pids"))
	if err != nil {
		s.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^`+name+` (\d+)$`).FindAllStringSubmatch(string(b), -1)
	pid, err := strconv.Atoi(m[len(m)-1][1]) // the newest of that name
	if err != nil {
		s.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
}

// quota is what one of its cgroups has, in cores.
func (s *script) quota(path string) (float64, error) {
	at := filepath.Join(s.group, path)
	b, err := os.ReadFile(filepath.Join(at, "cpu.max"))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join(at, "cpu.cfs_quota_us"))
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%s has no limit", path)
	}
	return v / 100000, err
}

// limit gives one of its cgroups so many cores.
func (s *script) limit(path string, cores float64) {
	s.Helper()
	at, text := filepath.Join(s.group, path), strconv.Itoa(int(math.Round(cores*100000)))
	err := os.WriteFile(filepath.Join(at, "cpu.cfs_quota_us"), []byte(text), 0)
	if _, v2 := os.Stat(filepath.Join(at, "cpu.max")); v2 == nil {
		err = os.WriteFile(filepath.Join(at, "cpu.max"), []byte(text+" 100000"), 0)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// hierarchies are where its cgroups are: what limits, and what accounts.
func (s *script) hierarchies() []string {
	all := []string{s.group}
	if a := hostfs.Accounting(s.group); a != "" {
		all = append(all, a)
	}
	return all
}

const scriptPool = 1.2 // cores, in the script's trimtab.yaml

func scriptHosts() []string { return []string{"h1", "h2", "h3"} }

// watch samples all quotas until stop is called. Two readings that are equal were
// all there at one time, between them; others say nothing of a sum.
func (s *script) watch() (stop func() (samples, over int)) {
	done, result := make(chan struct{}), make(chan [2]int)
	read := func() (all map[string]float64, err error) {
		paths, _ := filepath.Glob(filepath.Join(s.group, "h*", "shop", "*@*"))
		all = map[string]float64{"h1/shop/search": 0, "h3/reports": 0}
		for _, p := range paths {
			rest, _ := filepath.Rel(s.group, p)
			all[rest] = 0
		}
		for _, h := range scriptHosts() {
			all[h] = 0
		}
		for p := range all {
			if all[p], err = s.quota(p); err != nil {
				break
			}
		}
		return all, err
	}
	go func() {
		samples, over := 0, 0
		var told map[string]float64
		for {
			select {
			case <-done:
				result <- [2]int{samples, over}
				return
			case <-time.After(5 * time.Millisecond):
			}
			first, err := read()
			again, errAgain := read()
			if err != nil || errAgain != nil || !maps.Equal(first, again) {
				continue
			}
			samples++
			given := map[string]float64{}
			for p, v := range first {
				if host, _, ok := strings.Cut(p, "/"); ok {
					given[host] += v
					given["pool"] += v
				}
			}
			bad := given["pool"] > scriptPool+1e-3
			for _, h := range scriptHosts() {
				bad = bad || given[h] > first[h]+1e-3
			}
			if bad {
				if over++; !maps.Equal(first, told) {
					s.Errorf("%v: %v is over a capacity", time.Now().UTC(), first)
				}
				told = first
			}
		}
	}()
	counted := sync.OnceValues(func() (int, int) { close(done); r := <-result; return r[0], r[1] })
	s.Cleanup(func() { counted() }) // where the test ends before it asks
	return counted
}

func (s *script) nothingIsLeft() {
	s.Helper()
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("files are left: %v", err)
	}
	if _, err := os.Stat(s.group); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("a cgroup is left: %v", err)
	}
	out, err := exec.Command("ip", "netns", "list").CombinedOutput()
	if err != nil || strings.Contains(string(out), "trimtab-cluster-"+s.run+"-") {
		s.Errorf("a namespace is left: %s%v", out, err)
	}
	if err := exec.Command("ip", "link", "show", "tt"+s.run).Run(); err == nil {
		s.Error("the bridge is left")
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		if b, _ := os.ReadFile(file); bytes.Contains(b, []byte(s.dir)) {
			s.Errorf("a process is left: %q", b)
		}
	}
}
