//go:build integration

package cgroup_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/proctest"
	"github.com/trimtab/trimtab/internal/trial"
)

// TestMain also is the actuator and the watchdogs that are killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "watchdog" {
		if _, err := actuator.Watchdog(context.Background(), os.Args[2], os.Stdin, reopen); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if v := os.Getenv("TEST_VICTIM"); v != "" {
		fmt.Fprintln(os.Stderr, act(v))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// prey is what an actuator that will be killed is told.
type prey struct {
	Dir, Root string
	Groups    []string
	Lease     float64
	// Loan: the fast loop has lent to the first group when it is killed.
	Loan bool
}

// act carries out one plan, prints the time of the boot clock at which its lease
// ends, and waits to be killed.
func act(text string) error {
	var v prey
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	c := actuator.Config{Host: "h", Pool: "p", Dir: v.Dir, LockDir: v.Dir + "-locks", Reopen: reopen, JournalSize: 64 << 10, Watchdog: []string{os.Args[0], "watchdog", v.Dir}}
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 100, Lease: trimtab.Seconds(v.Lease)}
	for i, group := range v.Groups {
		knob, err := cgroup.Open(cgroup.Config{Root: v.Root, Path: group})
		if err != nil {
			return err
		}
		name := "w" + strconv.Itoa(i)
		c.Targets = append(c.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: name, Resource: "cpu"}, Knob: knob, Min: 0.1, Max: 8, Mode: trimtab.Act})
		before, err := knob.Read(context.Background())
		if err != nil {
			return err
		}
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "h", Workload: name, Resource: "cpu"}, Expect: before, Set: trimtab.Units(1.5), Mode: trimtab.Act})
	}
	if v.Loan {
		c.Fast, p.Lendable = true, map[string]float64{"h": 10}
		for i := range p.Actions {
			p.Actions[i].Envelope = &trimtab.Envelope{Floor: 0.5, Target: 1.5, Ceiling: 6, Lend: true, Borrow: true, Burst: 1.5}
		}
	}
	a, err := actuator.Open(context.Background(), c)
	if err != nil {
		return err
	}
	p.Time = time.Now()
	o := a.Handle(context.Background(), p)
	for _, r := range o.Results {
		if r.Status != trimtab.Written {
			return fmt.Errorf("%+v", r)
		}
	}
	if o.Refused != "" || len(o.Results) != len(v.Groups) {
		return fmt.Errorf("%+v", o)
	}
	if v.Loan {
		var look actuator.FastLook
		a.FastLook(&look)
		if found := a.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 5, Burst: 1.5}}, nil); len(found) != 2 || found[0] != 5 {
			return fmt.Errorf("no loan: %v", found)
		}
	}
	fmt.Println(int64(hostfs.BootTime() + p.Lease.Duration()))
	select {}
}

// An order kills an actuator and its watchdogs; replaced waits until there are
// two watchdogs that were not killed, or the baselines are back.
type order func(actuator int, dogs []int, replaced func(killed ...int))

// hunt runs one actuator on real groups, kills it and its watchdogs as kills
// says, and returns how long after the end of the lease the baselines were back.
func hunt(t *testing.T, root string, lease time.Duration, loan bool, kills order) time.Duration {
	v := prey{Dir: filepath.Join(t.TempDir(), "journal"), Root: root, Lease: lease.Seconds(), Loan: loan}
	baselines := []trimtab.Amount{trimtab.Units(0.5), trimtab.Unlimited()}
	var knobs []*cgroup.CPU
	for _, b := range baselines {
		k := openKnob(t, cgroup.Config{Root: root, Path: makeGroup(t, root).Path()})
		if err := k.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		v.Groups, knobs = append(v.Groups, strings.Fields(k.String())[2]), append(knobs, k)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), "TEST_VICTIM="+string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); proctest.End(t, v.Dir) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	end, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := hostfs.BootTime() + time.Minute; len(proctest.With(v.Dir)) < 2; pause(time.Millisecond) {
		if hostfs.BootTime() > deadline {
			t.Fatal("there are no two watchdogs")
		}
	}
	back := func() bool {
		for i, k := range knobs {
			if now, err := k.Read(t.Context()); err != nil || !now.Equal(baselines[i], 1e-6) {
				return false
			}
		}
		return true
	}
	// The death of all within the time that a process needs to start cannot be
	// survived, and on a busy machine that time is long.
	kills(cmd.Process.Pid, proctest.With(v.Dir), func(killed ...int) {
		for deadline := hostfs.BootTime() + time.Minute; !back() && hostfs.BootTime() < deadline; pause(time.Millisecond) {
			dogs := proctest.With(v.Dir)
			if len(dogs) == 2 && !slices.ContainsFunc(dogs, func(pid int) bool { return slices.Contains(killed, pid) }) {
				return
			}
		}
	})
	for !back() {
		if hostfs.BootTime() > time.Duration(end)+time.Minute {
			t.Fatal("the baselines did not come back")
		}
		pause(2 * time.Millisecond)
	}
	late := hostfs.BootTime() - time.Duration(end)
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := hostfs.BootTime() + time.Minute; len(proctest.With(v.Dir)) > 0; pause(5 * time.Millisecond) {
		if hostfs.BootTime() > deadline {
			t.Errorf("processes %v are left", proctest.With(v.Dir))
			return late
		}
	}
	return late
}

func pause(d time.Duration) { <-time.After(d) }

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func TestAnActuatorKilledDuringALoanLeavesTheBaselinesWithinTheLease(t *testing.T) {
	d := hunt(t, cpuRoot(t), 2*time.Second, true, func(actuator int, _ []int, _ func(...int)) { kill(actuator) })
	t.Logf("baselines back %v after the end of the lease", d.Round(time.Millisecond))
}

// R15: each order is tried as often as the trial says.
func TestAnActuatorAndAWatchdogKilledInAnyOrderLeaveTheBaselines(t *testing.T) {
	root := cpuRoot(t)
	tr := trial.Start(t, 10)
	n, random := tr.N, tr.Rand
	// Under torture a baseline that comes back later than a second after the lease
	// is a failure too; a busy machine that only tests may be late.
	_, promised := os.LookupEnv(trial.CasesEnv)
	gap := func(least int) time.Duration { return time.Duration(least+random.IntN(500-least)) * time.Millisecond }
	const lease = 2 * time.Second
	for _, o := range []struct {
		name string
		make func() order
	}{
		{"actuator, 0 to 500 ms, a watchdog", func() order {
			d, which := gap(0), random.IntN(2)
			return func(a int, dogs []int, _ func(...int)) { kill(a); pause(d); kill(dogs[which]) }
		}},
		{"a watchdog, 0 to 500 ms, actuator", func() order {
			d, which := gap(0), random.IntN(2)
			return func(a int, dogs []int, _ func(...int)) { kill(dogs[which]); pause(d); kill(a) }
		}},
		{"both watchdogs at once, 50 to 500 ms, actuator", func() order {
			d := gap(50)
			return func(a int, dogs []int, replaced func(...int)) {
				kill(dogs[0])
				kill(dogs[1])
				pause(d)
				replaced(dogs...)
				kill(a)
			}
		}},
		{"all three in any order, 250 to 500 ms between", func() order {
			first, second, turns := gap(250), gap(250), random.Perm(3)
			return func(a int, dogs []int, replaced func(...int)) {
				pids := append([]int{a}, dogs...)
				var killed []int
				for i, d := range []time.Duration{first, second, 0} {
					pid := pids[turns[i]]
					kill(pid)
					killed = append(killed, pid)
					pause(d)
					if i < 2 {
						replaced(killed...)
					}
				}
			}
		}},
	} {
		var mu sync.Mutex
		var late []time.Duration
		t.Run(o.name, func(t *testing.T) {
			for i := range n {
				kills := o.make()
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					d := hunt(t, root, lease, false, kills)
					mu.Lock()
					late = append(late, d)
					tr.Took(d)
					mu.Unlock()
				})
			}
		})
		if len(late) == 0 {
			continue // not asked for
		}
		slices.Sort(late)
		over := 0
		for _, d := range late {
			if d > time.Second {
				over++
			}
		}
		t.Logf("%-48s %4d kills: baselines back after the end of the lease: median %v, worst %v; later than 1 s: %d",
			o.name, len(late), late[len(late)/2].Round(time.Millisecond), late[len(late)-1].Round(time.Millisecond), over)
		if promised && over > 0 || len(late) < n {
			t.Errorf("%s: %d of %d were late, %d lost", o.name, over, n, n-len(late))
		}
	}
}
