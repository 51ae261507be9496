package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

// allowed are the CPUs on which a process may run, as the kernel says.
func allowed(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatal("no Cpus_allowed_list")
	return ""
}

func TestATaskRunsOnItsCPUsFromItsFirstInstructionAndOnOthersWhenItIsBoundAgain(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		whole, err := r.CPUs()
		if err != nil {
			t.Skipf("no CPU sets: %v", err)
		}
		first, _, _ := strings.Cut(strings.ReplaceAll(whole, "-", ","), ",")
		s := h.sh("grep Cpus_allowed_list /proc/self/status")
		s.CPUs = first
		if _, text := h.run(s); !strings.HasSuffix(strings.TrimSpace(text), ":\t"+first) {
			t.Errorf("on %q, want %s", text, first)
		}
		id := h.start(h.spec("sleep", "1000"))
		pid := h.infoOf(id).PID
		if got := allowed(t, pid); got != whole {
			t.Errorf("on %s, want all of %s", got, whole)
		}
		if err := r.Pin(t.Context(), id, first); err != nil || allowed(t, pid) != first {
			t.Errorf("on %s, %v", allowed(t, pid), err)
		}
		// With a grant nobody's cores are kept from it.
		if err := r.Relabel(t.Context(), id, Regular); err != nil || allowed(t, pid) != whole {
			t.Errorf("regular on %s, %v", allowed(t, pid), err)
		}
		if err := r.Pin(t.Context(), id, first); err != nil {
			t.Error(err)
		}
		if err := r.Pin(t.Context(), id, ""); err != nil || allowed(t, pid) != whole {
			t.Errorf("on %s, %v", allowed(t, pid), err)
		}
		for _, bad := range []string{"x", "1-", "1\n2", "99999"} {
			if err := r.Pin(t.Context(), id, bad); err == nil {
				t.Errorf("bound to %q", bad)
			}
		}
		if got := allowed(t, pid); got != whole {
			t.Errorf("after mistakes on %s", got)
		}
	})
}

func TestWithoutCPUSetsATaskIsNotBound(t *testing.T) {
	tr, err := openTree(t.TempDir(), "trimtab") // plain files
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	if _, err := tr.whole(); !isA(err, trimtab.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	s := valid().withDefaults()
	s.CPUs = "0"
	group := tr.path(s.Class, leafOf(s.ID))
	if err := tr.make(group); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cpu.max", "memory.max", "pids.max"} {
		if err := os.WriteFile(filepath.Join(tr.main.Path(), group, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.limit(group, s); !isA(err, trimtab.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}
