package perf

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Found: the doctor tried the counters with all rights of root, and said that they count,
// where the process that counts could open none.
func TestAProbeHasTheRightsOfTheProcessThatCounts(t *testing.T) {
	a, err := Probe(t.Context(), []string{os.Args[0], "as-no-counter"})
	if err != nil || len(a.Software) != 0 || len(a.Missing) != 1 {
		t.Errorf("%+v, %v: want what that process says", a, err)
	}
	if _, err := Probe(t.Context(), []string{os.Args[0], "as-dead"}); err == nil {
		t.Error("a process that ends at once counts")
	}
}

// Debian's kernels begin at 3, and let CAP_PERFMON alone open nothing there
// (kernel/events/core.c with their patch, "Allow further restriction of perf_event_open").
func TestAKernelThatTakesNoCounterFromPerfmonAloneIsTold(t *testing.T) {
	for _, c := range []struct {
		has   uint64
		level string
		want  string
	}{
		{1 << unix.CAP_PERFMON, "3\n", "sysctl kernel.perf_event_paranoid=2"},
		{1 << unix.CAP_PERFMON, "4\n", "sysctl kernel.perf_event_paranoid=2"},
		{1 << unix.CAP_PERFMON, "2\n", "give CAP_PERFMON"},
		{0, "3\n", "give CAP_PERFMON"},
		{1 << unix.CAP_PERFMON, "", "give CAP_PERFMON"},
	} {
		if err := refused(syscall.EACCES, c.has, c.level); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#x at %q: %v", c.has, c.level, err)
		}
	}
}
