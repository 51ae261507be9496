package kubernetes_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/trial"
)

// TestMain also is the actuator of the test that kills it.
func TestMain(m *testing.M) {
	if config := os.Getenv("TEST_KUBECONFIG"); config != "" {
		fmt.Fprintln(os.Stderr, act(config, os.Getenv("TEST_DIR")))
		os.Exit(1)
	}
	// They wait for watches and heartbeats more than they compute; -parallel says otherwise.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// act carries out one plan for all that the Deployment has, and waits to be killed.
func act(config, dir string) error {
	ctx := context.Background()
	at := kube.Config{Kubeconfig: config}
	client, err := kube.Open(at)
	if err != nil {
		return err
	}
	view := kube.Watch(ctx, client, []string{"shop"}, nil)
	if err := view.Ready(ctx); err != nil {
		return err
	}
	for isStale(view.Resizable()) {
		time.Sleep(time.Millisecond)
	}
	of := kubernetes.Cluster{Config: at, Watched: func() (*kube.Cluster, error) { return view, nil }, Rules: func(kube.Ref) kubernetes.Options { return kubernetes.Options{RestoreBaseline: true} }}
	pods, scales := kubernetes.Pods(of), kubernetes.Scales(of)
	target := func(resource string) []actuator.Target {
		return []actuator.Target{{KnobID: trimtab.KnobID{Workload: "checkout", Resource: resource}, Min: 0.05, Max: 20, Mode: trimtab.Act}}
	}
	a, err := actuator.Open(ctx, actuator.Config{
		Host: "h", Pool: "p", Dir: dir, Reopen: actuator.AnyOf([]actuator.Kind{pods, scales}),
		OpenJournal: func(ctx context.Context) (actuator.Journal, error) {
			return kubernetes.OpenJournal(ctx, client, "trimtab", "p")
		},
		Finders: []actuator.Finder{
			pods.Finder(actuator.Location{Path: podsAt}, podsAt, target(trimtab.CPU)),
			scales.Finder(actuator.Location{Path: workloadAt}, workloadAt, target(trimtab.Replicas)),
		},
	})
	if err != nil {
		return err
	}
	fmt.Println(statusesOf(a.Handle(ctx, everything(a, 1, 1, 0.1))))
	select {}
}

// everything moves all that an actuator holds by steps of that size.
func everything(a *actuator.Actuator, epoch, sequence uint64, step float64) *trimtab.Plan {
	p := asks(epoch)
	p.Sequence = sequence
	for i, k := range a.Holding().Targets {
		if k.Resource == trimtab.Replicas {
			p.Actions = append(p.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(k.Now.Value + 1), Mode: trimtab.Act})
		} else {
			p.Actions = append(p.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(k.Now.Value + step*float64(i+1)), Mode: trimtab.Act})
		}
	}
	return p
}

func statusesOf(o *trimtab.Outcome) (all []string) {
	for _, r := range o.Results {
		all = append(all, string(r.Status)+" "+r.Reason)
	}
	return append(all, o.Refused)
}

// Item 5. The process dies at its nth write, before or after the server carries it out.
func TestKilledBetweenAnyTwoStepsNoObjectIsChangedThatTheJournalDoesNotKnow(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 6)
	deepest := 0
	for i := range tr.N {
		t.Run("", func(t *testing.T) { // what a case opens is closed at its end
			deepest = max(deepest, killed(t, tr, (i+int(tr.Seed%9))%9))
		})
		tr.Case()
	}
	tr.Notef("killed after up to %d writes", deepest)
}

// killed has an actuator die at its write number at, counted from 0, and returns how
// many writes it began.
func killed(t *testing.T, tr *trial.Trial, at int) (writes int) {
	s := kubetest.New(t)
	s.Shop(3, burstable)
	after := tr.Rand.IntN(2) == 0
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_KUBECONFIG="+s.KubeconfigOf("child"), "TEST_DIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{})
	kill := sync.OnceFunc(func() { _ = cmd.Process.Kill(); <-dead })
	started := make(chan struct{})
	s.Fail(func(r *http.Request) int {
		if kubetest.UserOf(r) != "child" || r.Method == http.MethodGet {
			return 0
		}
		<-started
		if writes++; writes <= at {
			return 0
		}
		kill()
		if after && writes == at+1 {
			return 0
		}
		return 503
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		line := make([]byte, 4096)
		if n, _ := out.Read(line); n > 0 { // it is done before the nth write
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait() // it was killed
		close(dead)
	}()
	close(started)
	select {
	case <-dead:
	case <-time.After(time.Minute):
		t.Fatal("it does nothing")
	}
	s.Fail(nil)
	restored(tr, s, fmt.Sprintf("killed at write %d, carried out: %v", at+1, after))
	return writes
}

// restored reports whether the journal brings everything back.
func restored(tr *trial.Trial, s *kubetest.Server, when string) {
	ctx := context.Background()
	client, err := kube.Open(kube.Config{Kubeconfig: s.KubeconfigOf("restorer")})
	if err != nil {
		tr.Failf("%v", err)
		return
	}
	j, err := kubernetes.OpenJournal(ctx, client, "trimtab", "p")
	if err != nil {
		tr.Failf("%s: %v", when, err)
		return
	}
	bare := kubernetes.Cluster{}
	r, err := actuator.RestoreJournal(ctx, j, actuator.AnyOf([]actuator.Kind{kubernetes.Pods(bare), kubernetes.Scales(bare)}))
	if err != nil {
		tr.Failf("%s: %v", when, err)
	}
	for i := range 3 {
		app := kubetest.Container(s.Get(kubetest.PodPath(i)), "app")
		if got := kubetest.Sub(app, "resources", "limits")["cpu"]; got != "500m" {
			tr.Failf("%s: pod %d has %v, and the journal says\n%s", when, i, got, r)
		}
	}
	if got := fmt.Sprint(kubetest.Sub(s.Get(kubetest.Deployment), "spec")["replicas"]); got != "3" {
		tr.Failf("%s: replicas %s, and the journal says\n%s", when, got, r)
	}
}

// Item 6. Two actuators, each of which believes to be the only one: the older one is
// stopped before one of its requests, while the newer one takes over and writes, perhaps
// the same values as before in the end.
func TestOfTwoActuatorsTheOlderOneWritesNothingOnceTheNewerOneHas(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 8)
	gated := 0
	for i := range tr.N {
		t.Run("", func(t *testing.T) { // what a case opens is closed at its end
			if olderAndNewer(t, tr, (i+int(tr.Seed%8))%8) {
				gated++
			}
		})
		tr.Case()
	}
	tr.Notef("%d of them stopped in between", gated)
}

// olderAndNewer has two actuators write, and reports whether the older one was stopped
// before its request number at, counted from 0. Sometimes it is not stopped at all.
func olderAndNewer(t *testing.T, tr *trial.Trial, at int) (gated bool) {
	s := kubetest.New(t)
	s.Shop(2, burstable)
	older, newer := watchAs(t, s, "older"), watchAs(t, s, "newer")
	first := older.runs(older.journaled)
	stopped, goOn := make(chan struct{}), make(chan struct{})
	if tr.Rand.IntN(4) == 0 {
		at, stopped = 1000, closed() // both at once
		close(goOn)
	}
	var mu sync.Mutex
	n := 0
	s.Before(func(r *http.Request) {
		if kubetest.UserOf(r) != "older" || r.URL.Query().Get("watch") != "" || strings.HasPrefix(r.URL.Path, "/version") {
			return
		}
		mu.Lock()
		n++
		stop := n == at+1
		mu.Unlock()
		if stop {
			close(stopped)
			<-goOn
		}
	})
	done := make(chan []string)
	go func() { done <- statusesOf(first.Handle(t.Context(), everything(first, 1, 1, 0.1))) }()
	var outcome []string
	select {
	case <-stopped:
	case outcome = <-done:
	}
	second, err := newer.opens(newer.journaled)
	for ; errors.Is(err, trimtab.ErrStale); second, err = newer.opens(newer.journaled) { // the older one wrote in between
	}
	if err != nil {
		t.Fatal(err)
	}
	second.Handle(t.Context(), everything(second, 2, 1, 0.2))
	back := tr.Rand.IntN(2) == 0
	if back { // to what the older one found
		second.Handle(t.Context(), asks(2, order{firstPod, trimtab.CPU, stateOf(second, trimtab.CPU, firstPod).Now.Value, 0.5}))
	}
	if outcome == nil {
		if at < 1000 {
			gated = true
			if tr.Rand.IntN(2) == 0 {
				older.sync() // its watch went on meanwhile
			}
			close(goOn)
		}
		outcome = <-done
	}
	taken := map[string]bool{}
	for _, p := range s.Patched() {
		if p.User == "newer" {
			taken[p.Path] = true
		} else if taken[p.Path] {
			tr.Failf("stopped before request %d, put back %v: %s was written after the newer one had: %v\n%q", at+1, back, p.Path, s.Patched(), outcome)
		}
	}
	s.Before(nil)
	return gated
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// journaled has an actuator keep its journal in the cluster.
func (c *cluster) journaled(config *actuator.Config) {
	config.OpenJournal = func(context.Context) (actuator.Journal, error) {
		j, err := c.journal()
		if err != nil {
			return nil, err
		}
		return j, nil
	}
}

// Item 8: pods come in a rollout, in any order of events and at any moment, limits are
// set by somebody else and come into force when a kubelet cares; what is raised never
// makes all that the watch has told of more than the pool.
func TestTheSumIsNeverOverThePoolByWhatIsWrittenInAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 8)
	const pool = 4.0
	raised := 0
	for range tr.N {
		c := open(t, 3, burstable)
		a := c.runs(nil)
		made := 0
		for range 25 {
			switch tr.Rand.IntN(6) {
			case 0, 1:
				made++
				c.surge(made, tr.Rand.IntN(2) == 0)
			case 2:
				if all := c.Paths("/api/v1/namespaces/shop/pods/"); len(all) > 2 {
					c.Delete(all[tr.Rand.IntN(len(all))])
					c.sync()
				}
			case 3:
				for _, p := range c.Paths("/api/v1/namespaces/shop/pods/") {
					if tr.Rand.IntN(2) == 0 {
						c.Kubelet(p)
					}
				}
				c.sync()
			case 4:
				a.Tick(t.Context())
			}
			p := asks(1)
			p.Capacity = pool
			for _, k := range a.Holding().Targets {
				if k.Resource == trimtab.CPU && tr.Rand.IntN(2) == 0 {
					p.Actions = append(p.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(float64(tr.Rand.IntN(200)) / 100), Mode: trimtab.Act})
				}
			}
			before, _ := c.limits()
			a.Handle(t.Context(), p)
			after, sum := c.limits()
			for path, v := range after {
				if was, ok := before[path]; ok && v > was {
					if raised++; sum > pool+1e-6 {
						tr.Failf("%s was raised from %v to %v: %v of %v, %v", path, was, v, sum, pool, after)
					}
					break
				}
			}
		}
		tr.Case()
	}
	if tr.Notef("%d plans raised something", raised); raised == 0 {
		t.Error("nothing was raised")
	}
}

// surge makes a pod of a new version, whose ReplicaSet the watch tells of after it, or
// not at all.
func (c *cluster) surge(n int, early bool) {
	set := "/apis/apps/v1/namespaces/shop/replicasets/checkout-new"
	owner := kubetest.Sub(c.Get(kubetest.Deployment), "metadata")["uid"]
	if early {
		c.Put(set, fmt.Sprintf(`{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"uid":"new-set","ownerReferences":[{"kind":"Deployment","name":"checkout","uid":%q,"controller":true}]}}`, owner))
	}
	c.Put(fmt.Sprintf("/api/v1/namespaces/shop/pods/checkout-new-%d", n), fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"generation":1,"labels":{"app":"checkout"},"ownerReferences":[{"kind":"ReplicaSet","name":"checkout-new","uid":"new-set","controller":true}]},"spec":{"nodeName":"n1","containers":[{"name":"app","resources":%s}]}}`, burstable))
	c.sync()
}

// sync waits until the watch has told of all pods.
func (c *cluster) sync() {
	c.t.Helper()
	want := map[string]string{}
	for _, path := range c.Paths("/api/v1/namespaces/shop/pods/") {
		m := kubetest.Sub(c.Get(path), "metadata")
		want[fmt.Sprint(m["name"])] = fmt.Sprint(m["resourceVersion"])
	}
	eventually(c.t, "all pods are seen", func() bool {
		n := 0
		same := true
		c.view.PodBy(func(p *kube.Pod) bool {
			n++
			same = same && want[p.Name] == p.ResourceVersion
			return false
		})
		return same && n == len(want)
	})
}

// limits are what pods are set to, and the sum of what they are set to or have.
func (c *cluster) limits() (set map[string]float64, sum float64) {
	cores := func(v any) (out float64) {
		if _, err := fmt.Sscanf(fmt.Sprint(v), "%fm", &out); err != nil {
			c.t.Fatalf("%v: %v", v, err)
		}
		return out / 1000
	}
	set = map[string]float64{}
	for _, path := range c.Paths("/api/v1/namespaces/shop/pods/") {
		pod := c.Get(path)
		v := cores(kubetest.Sub(kubetest.Container(pod, "app"), "resources", "limits")["cpu"])
		set[path] = v
		if all, _ := kubetest.Sub(pod, "status")["containerStatuses"].([]any); len(all) > 0 {
			v = max(v, cores(kubetest.Sub(all[0].(kubetest.Object), "resources", "limits")["cpu"]))
		}
		sum += v
	}
	return set, sum
}

// R21: baselines are back by the end of the lease though the server fails three of ten
// requests and answers conflicts.
func TestWithoutPlansBaselinesAreBackByTheEndOfTheLeaseThoughTheServerFails(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 3)
	for range tr.N {
		c := open(t, 3, burstable)
		a := c.runs(c.journaled)
		p := asks(1, order{firstPod, trimtab.CPU, 0.5, 1}, order{"checkout-7d9f-ab", trimtab.CPU, 0.5, 2}, order{"checkout", trimtab.Replicas, 3, 2})
		p.Lease = 0.4
		a.Handle(t.Context(), p)
		c.settle()
		seed := tr.Rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		c.Fail(func(r *http.Request) int {
			switch v := random.Float64(); {
			case r.URL.Query().Get("watch") != "":
			case v < 0.3:
				return []int{500, 503}[random.IntN(2)]
			case v < 0.4 && r.Method == http.MethodPatch:
				return http.StatusConflict
			}
			return 0
		})
		eventually(t, "all is back", func() bool {
			a.Tick(t.Context())
			return len(a.Holding().Targets) == 4 && a.Holding().LeaseLeft == 0 && !c.changed(trimtab.CPU) && !c.changed(trimtab.Replicas) && c.limitOf(1) == "500m"
		})
		c.Fail(nil)
		tr.Case()
	}
}

func (c *cluster) limitOf(pod int) any {
	return kubetest.Sub(kubetest.Container(c.Get(kubetest.PodPath(pod)), "app"), "resources", "limits")["cpu"]
}
