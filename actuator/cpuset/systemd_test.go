package cpuset

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// At daemon-reload systemd writes the CPU set of each of its units again, so trimtab
// changes the set of a unit through systemd and not by writing the file.
func TestCoresOfASystemdUnitOutliveDaemonReloadAndAreRestored(t *testing.T) {
	if os.Getenv("TRIMTAB_GUEST") != "systemd" {
		t.Skip("it makes units and reloads systemd: run make guest-short")
	}
	systemctl := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
			t.Fatalf("systemctl %v: %v\n%s", args, err, out)
		}
	}
	const root, name = "/sys/fs/cgroup", "pinned.service"
	unit := "[Service]\nSlice=shop.slice\nExecStart=/bin/sleep 1000\nDelegate=yes\nAllowedCPUs=0-1\n"
	if err := os.WriteFile("/run/systemd/system/"+name, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	systemctl("daemon-reload")
	systemctl("start", name)
	group := filepath.Join("shop.slice", name)
	k := open(t, at(root, group))
	had, err := k.Read(t.Context())
	if err != nil || had != trimtab.Units(2) {
		t.Fatalf("%v, %v", had, err)
	}
	h := newHost(t, open(t, at(root, group)))
	h.plan(t, trimtab.Written, 0, 1)
	systemctl("daemon-reload")
	if got := content(t, root, group, cpusFile); got != "0" {
		t.Errorf("after a reload it has CPUs %q", got)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	systemctl("daemon-reload")
	if got := content(t, root, group, cpusFile); got != "0-1" {
		t.Errorf("it is left with CPUs %q", got)
	}
	// Of one that had none, it is taken away from the unit, too.
	none := ""
	undo := actuator.UndoOf(kind, undo{Config: at(root, group), CPUs: &none})
	err = k.Restore(t.Context(), undo)
	systemctl("daemon-reload")
	if got := content(t, root, group, effective2); err != nil || got != "0-1" {
		t.Errorf("it has CPUs %q, %v", got, err)
	}
}
