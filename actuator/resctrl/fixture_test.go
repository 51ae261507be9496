package resctrl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/resctrl"
	"github.com/trimtab/trimtab/internal/rdt"
	"github.com/trimtab/trimtab/internal/rdt/rdttest"
)

// host is a tree of resctrl and a hierarchy of control groups.
type host struct {
	t      testing.TB
	tree   *rdttest.Tree
	groups string
	kind   actuator.Kind
}

// newHost makes a host with such a CPU.
func newHost(t testing.TB, s rdttest.Spec) *host {
	h := &host{t: t, tree: rdttest.New(s), groups: t.TempDir()}
	h.kind = resctrl.Kind(h.host(nil))
	return h
}

func (h *host) host(places map[string]bool) resctrl.Host {
	out := resctrl.Host{Open: func(string) (rdt.Files, error) { return h.tree, nil }}
	if places != nil {
		out.Locations = func(context.Context) (map[string]bool, error) { return places, nil }
	}
	return out
}

// server is a CPU with 11 ways, of which devices share the top two, and percents.
func server() rdttest.Spec {
	return rdttest.Spec{Ways: 11, Shareable: 0x600, Domains: []int{0, 1}}
}

// cgroup makes a control group with tasks, which begin in the default group.
func (h *host) cgroup(path string, tasks ...int) {
	h.t.Helper()
	h.tree.Spawn(tasks...)
	h.list(path, tasks...)
}

// list sets the tasks of a control group.
func (h *host) list(path string, tasks ...int) {
	h.t.Helper()
	dir := filepath.Join(h.groups, path)
	text := strings.Trim(fmt.Sprintln(tasks), "[]\n")
	text = strings.ReplaceAll(text, " ", "\n") + "\n"
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cgroup.threads"), []byte(text), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

// knob opens a knob of a control group.
func (h *host) knob(path, resource string) actuator.Knob {
	h.t.Helper()
	k, err := h.kind.Open(actuator.Location{Root: h.groups, Path: path}, resource)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { k.Close() })
	return k
}

func (h *host) write(k actuator.Knob, v float64) {
	h.t.Helper()
	h.writeAmount(k, trimtab.Units(v))
}

func (h *host) writeAmount(k actuator.Knob, a trimtab.Amount) {
	h.t.Helper()
	if err := k.Write(h.t.Context(), a); err != nil {
		h.t.Fatalf("write %v to %s: %v", a, k, err)
	}
}

func (h *host) read(k actuator.Knob) trimtab.Amount {
	h.t.Helper()
	v, err := k.Read(h.t.Context())
	if err != nil {
		h.t.Fatalf("read %s: %v", k, err)
	}
	return v
}

// trimtabs lists the groups that trimtab made.
func (h *host) trimtabs() (all []string) {
	h.t.Helper()
	names, err := h.tree.Dirs("")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "trimtab-") {
			all = append(all, name)
		}
	}
	return all
}

// schemata returns the lines of the group that a task is in, without blanks.
func (h *host) schemata(task int) string {
	h.t.Helper()
	group, there := h.tree.GroupOf(task)
	text, err := h.tree.Read(filepath.Join(group, "schemata"))
	if err != nil || !there {
		h.t.Fatalf("task %d in %q: %v", task, group, err)
	}
	return strings.TrimSpace(strings.ReplaceAll(text, " ", ""))
}

// refused wants an error that is a refusal and says why.
func (h *host) refused(err error, why ...string) {
	h.t.Helper()
	if !errors.Is(err, trimtab.ErrRefused) {
		h.t.Fatalf("error %v, want refused", err)
	}
	for _, w := range why {
		if !strings.Contains(err.Error(), w) {
			h.t.Errorf("error %q does not say %q", err, w)
		}
	}
}
