package cgroup_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// listens names the environment variable that makes this program a service which is asked more
// than it can do: it listens, uses what it gets on two threads, and accepts nothing.
const listens = "TRIMTAB_TEST_LISTENS"

func TestAServiceThatAcceptsNothing(t *testing.T) {
	if os.Getenv(listens) == "" {
		t.Skip("it is a process of another test")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("listens on", l.Addr())
	spin := func() {
		for n := 0; n >= 0; n++ { // for longer than anybody waits
			continue
		}
	}
	go spin()
	spin()
}

// overloaded starts that service in a group with a quota of 0.1 cores.
func overloaded(t *testing.T, root, name string) (address string) {
	t.Helper()
	service := exec.Command(os.Args[0], "-test.run=^TestAServiceThatAcceptsNothing$")
	service.Env = append(os.Environ(), listens+"=1")
	out, err := service.StdoutPipe()
	if err == nil {
		err = service.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		service.Process.Kill()
		service.Wait()
		if !t.Skipped() {
			removeGroup(t, root, name)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if a, ok := strings.CutPrefix(lines.Text(), "listens on "); ok {
			makeGroup(t, root, name, service.Process)
			return a
		}
	}
	t.Fatal("the service does not listen")
	return ""
}

func TestARealServiceThatAcceptsNothingHasAQueueAndThreadsThatWait(t *testing.T) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		skip(t, "no cpu hierarchy: %v", err)
	}
	name := fmt.Sprintf("trimtab-waits-%d", os.Getpid())
	address := overloaded(t, root, name)
	for range 17 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "w", Path: name}}})
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Queued && s.Missing == "" && s.Value == 17 })
	s := o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Waited && s.Value > 0.5 })
	t.Logf("two threads that share 0.1 cores waited %.2f s in each second", s.Value)
	u := o.until(t, func(u *trimtab.Sample) bool { return u.Quantity == quantity.Usage && !u.Time.Before(s.Time) })
	if !u.Time.Equal(s.Time) {
		t.Errorf("what waits is of %v, the use after it of %v", s.Time, u.Time)
	}
}
