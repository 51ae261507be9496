package freezer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab"
)

// Found with libvirt, which puts the threads of each virtual CPU into a threaded group of
// their own: cgroup.procs of such a group answers EOPNOTSUPP (kernel/cgroup/cgroup.c,
// cgroup_procs_show), and a kill or freeze of the machine failed, though the kernel does both.
// Only a kernel of version 2 has such groups.
func TestAGroupWithThreadedGroupsInItIsFrozenAndKilled(t *testing.T) {
	c := realGroup(t)
	inside := inner(t, c, "vcpu0")
	kind := filepath.Join(inside.Root, inside.Path, "cgroup.type")
	if err := os.WriteFile(kind, []byte("threaded"), 0); err != nil {
		t.Skipf("no threaded groups here: %v", err)
	}
	_, ended := start(t, c)
	if _, err := os.ReadFile(filepath.Join(inside.Root, inside.Path, procs)); err == nil {
		t.Fatal("a threaded group lists its processes")
	}
	running := openRunning(t, c)
	for _, on := range []float64{0, 1} {
		if err := running.Write(t.Context(), trimtab.Units(on)); err != nil {
			t.Fatal(err)
		}
		settled(t, running)
	}
	if err := openAlive(t, c).Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	<-ended
}
