package beside

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/jobs"
)

func TestOwnGroupsAreThoseOfAnyHierarchyAndNoRoot(t *testing.T) {
	got := groupsIn("12:cpu,cpuacct:/system.slice/a:b.service\n1:name=systemd:/\n0::/init.scope\nbroken\n")
	if want := []string{"system.slice/a:b.service", "init.scope"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAPatternDoesNotTakeUpTheGroupThatTrimtabIsIn(t *testing.T) {
	own := []string{"system.slice/trimtab.service"}
	find := func(context.Context) ([]actuator.Instance, error) {
		return []actuator.Instance{{Name: "trimtab"}, {Name: "train"}}, nil
	}
	f := apart(actuator.Finder{Find: find}, func(name string) string { return groupOf("system.slice/*.service", name) }, own)
	if found, err := f.Find(t.Context()); err != nil || len(found) != 1 || found[0].Name != "train" {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestADeclaredJobThatHoldsTrimtabIsRefused(t *testing.T) {
	for group, bad := range map[string]bool{"system.slice": true, "system.slice/trimtab.service": true, "system": false, "system.slice/trimtab.service/jobs": false, "batch/*": false} {
		cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, "pool: {cpu: 4}\ncolocate: {}\nworkloads: [{name: batch, class: best-effort, knob: {cgroup: %q}}]\n", group))
		if err != nil {
			t.Fatal(err)
		}
		if err := declaredApart(cfg, []string{"system.slice/trimtab.service"}); (err != nil) != bad {
			t.Errorf("%s: %v", group, err)
		}
	}
}

func TestADeclaredJobInTheGroupOfSpeculativeTasksIsRefused(t *testing.T) {
	for group, bad := range map[string]bool{"tasks": true, "tasks/regular/one": true, "tas*": true, "batch/tasks": false, "task": false} {
		cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, "pool: {cpu: 4}\ncolocate: {}\nspeculate: {user: nobody, programs: [/bin/*], cgroup: tasks}\nworkloads: [{name: batch, class: best-effort, knob: {cgroup: %q}}]\n", group))
		if err != nil {
			t.Fatal(err)
		}
		if err := declaredApart(cfg, nil); (err != nil) != bad {
			t.Errorf("%s: %v", group, err)
		}
	}
}

func TestNobodyRegistersTheGroupOfAWorkloadOrOfAComponentOrOfTasks(t *testing.T) {
	cfg, err := config.Parse("trimtab.yaml", []byte("pool: {cpu: 4}\ncolocate: {}\nspeculate: {user: nobody, programs: [/bin/*], cgroup: tasks}\nsockets: {components: [{name: store, cgroup: shop/store}]}\nworkloads: [{name: batch, class: best-effort, knob: {cgroup: batch/*}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, group := range []string{"shop/store/worker", "batch/a", "tasks/regular", "free"} {
		if err := os.MkdirAll(filepath.Join(root, group), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r, err := jobs.Open(t.TempDir(), jobs.Config{Root: root, Reserved: cfg.ServiceGroups()})
	if err != nil {
		t.Fatal(err)
	}
	for group, bad := range map[string]bool{"shop": true, "shop/store": true, "shop/store/worker": true, "batch/a": true, "tasks": true, "tasks/regular": true, "free": false} {
		if err := r.Register(jobs.Spec{Name: "a", Cgroup: group}); (err != nil) != bad {
			t.Errorf("%s: %v", group, err)
		}
	}
	if jobs.Workload != config.RegisteredJobs {
		t.Errorf("%q is refused as the name of a workload, and jobs are called %q", config.RegisteredJobs, jobs.Workload)
	}
}

func TestAServiceThatWasHeardOfWithATimeInTheFutureIsHeardAgainOnceThatIsStale(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	tell := func(at time.Time, tail float64) {
		w.jobHost.reports.hear(w.now, &colocation.Contributions{Workload: "web", Time: at, Window: 1, Load: 400, MaxLoad: 1000, SLO: 0.1, Tail: &tail, Requests: 1000,
			Servpods: []colocation.Servpod{{Component: "web", Host: "h", Contribution: 1}}})
	}
	tell(w.now.AddDate(50, 0, 0), 0.02)
	tell(w.now, 0.09)
	if got := *w.reports.newest["web"].Tail; got != 0.02 {
		t.Errorf("tail %v: an older value was taken while the newest is fresh", got)
	}
	w.now = w.now.Add(w.reports.maxAge + time.Second)
	tell(w.now, 0.09)
	if got := *w.reports.newest["web"].Tail; got != 0.09 {
		t.Errorf("tail %v: nothing is heard any more", got)
	}
}
