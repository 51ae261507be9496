package throttle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// "A speculative task can be popped from the queue and started if all resource
// metrics are within the limits of upper bounds" (6.1).
func TestATaskStartsOnlyIfEveryMetricIsBelowItsThreshold(t *testing.T) {
	for _, c := range []struct {
		metrics []float64
		want    Reason
	}{
		{[]float64{0.79, 0.89}, ""},
		{[]float64{0.8, 0.1}, Loaded},
		{[]float64{0.1, 0.9}, Loaded},
		{[]float64{0.1, math.Inf(1)}, Loaded},
		{[]float64{0.1}, Missing},
		{[]float64{0.1, math.NaN()}, Missing},
		{nil, Missing},
	} {
		cfg := config()
		cfg.Metrics = []Metric{{"cpu", 0.8}, {"memory", 0.9}}
		h := newHost(t, cfg)
		h.metrics = c.metrics
		h.offer("a", 1)
		if d := h.tick(); d.Blocked != c.want || (len(d.Start) == 1) != (c.want == "") {
			t.Errorf("metrics %v: started %v, blocked %q, want %q", c.metrics, started(d), d.Blocked, c.want)
		}
	}
}

// "Once any dimension is beyond the corresponding threshold value, the
// oversubscription will be temporarily blocked until the launching condition is
// satisfied" (6.1).
func TestABlockedTaskStartsWhenTheMetricIsBelowAgain(t *testing.T) {
	h := newHost(t, config())
	h.metrics[0] = 0.9
	h.offer("a", 1)
	if d := h.ticks(3); len(d.Start) != 0 || d.Blocked != Loaded {
		t.Fatalf("%+v", d)
	}
	h.metrics[0] = 0.7
	if d := h.tick(); !slices.Equal(started(d), []string{"a"}) {
		t.Errorf("%+v", d)
	}
}

// "… and the overall oversubscription quota does not surpass the maximum threshold"
// (6.1).
func TestTheSumOfWhatTasksHoldStaysWithinTheRatio(t *testing.T) {
	c := config()
	c.Resources[0].Ratio, c.Resources[1].Ratio = 0.25, 1 // 16 of 64 cores, 256 of 256
	h := newHost(t, c)
	h.add("runs", Second, 0.5) // holds 1 and 4
	for _, cpu := range []float64{10, 5, 0.5} {
		h.offer(fmt.Sprint(cpu), cpu)
	}
	if d := h.tick(); !slices.Equal(started(d), []string{"10", "5"}) {
		t.Errorf("started %v, blocked %q", started(d), d.Blocked)
	}
	// They are not seen yet, and hold what they were given all the same.
	if d := h.tick(); len(d.Start) != 0 || d.Blocked != NoRoom {
		t.Errorf("started %v, blocked %q", started(d), d.Blocked)
	}
	// One that does not appear within 10 s is taken for lost.
	if d := h.ticks(9); !slices.Equal(started(d), []string{"0.5"}) {
		t.Errorf("started %v, blocked %q", started(d), d.Blocked)
	}
}

func TestWithoutACapacityOrWhatATaskHoldsNothingStarts(t *testing.T) {
	for name, spoil := range map[string]func(o *Observation){
		"no capacity":           func(o *Observation) { o.Capacity = nil },
		"capacity not a number": func(o *Observation) { o.Capacity[1] = math.NaN() },
		"capacity below 0":      func(o *Observation) { o.Capacity[0] = -1 },
		"held not known":        func(o *Observation) { o.Tasks[0].Holds = nil },
		"held not a number":     func(o *Observation) { o.Tasks[0].Holds = []float64{math.NaN(), 1} },
	} {
		h := newHost(t, config())
		h.add("runs", Second, 0)
		h.offer("a", 1)
		o := h.observe()
		spoil(o)
		if d := h.Decide(o); len(d.Start) != 0 || d.Blocked != Missing {
			t.Errorf("%s: started %v, blocked %q", name, started(d), d.Blocked)
		}
	}
}

// "A queue of speculative tasks with a maximum length (accept or reject at once)."
func TestATaskIsAcceptedOrRejectedAtOnceWithTheReason(t *testing.T) {
	c := config()
	c.Queue = 2
	h := newHost(t, c)
	h.add("runs", Second, 0)
	h.tick()
	late := h.now.Add(time.Minute)
	for _, step := range []struct {
		r    Request
		want Reason
	}{
		{Request{ID: "a", Wants: []float64{1, 1}, Expires: late}, ""},
		{Request{ID: "a", Wants: []float64{1, 1}, Expires: late}, Duplicate},
		{Request{ID: "runs", Wants: []float64{1, 1}, Expires: late}, Duplicate},
		{Request{ID: "", Wants: []float64{1, 1}, Expires: late}, Invalid},
		{Request{ID: "b", Wants: []float64{1}, Expires: late}, Invalid},
		{Request{ID: "b", Wants: []float64{1, math.NaN()}, Expires: late}, Invalid},
		{Request{ID: "b", Wants: []float64{-1, 1}, Expires: late}, Invalid},
		{Request{ID: "b", Wants: []float64{1, 1}, Expires: h.now}, Expired},
		{Request{ID: "b", Wants: []float64{64*20 + 1, 1}, Expires: late}, TooLarge},
		{Request{ID: "b", Wants: []float64{1, 1}, Expires: late}, ""},
		{Request{ID: "c", Wants: []float64{1, 1}, Expires: late}, Full},
	} {
		if got := h.Offer(h.now, step.r); got != step.want {
			t.Errorf("offer %+v: %q, want %q", step.r, got, step.want)
		}
	}
	if n := h.Counts(); n.Accepted != 2 || n.Rejected[Full] != 1 || n.Rejected[Duplicate] != 2 || n.Rejected[Invalid] != 4 {
		t.Errorf("%+v", n)
	}
	if !h.Cancel("a") || h.Cancel("a") || h.offer("c", 1) != "" {
		t.Error("a task that is cancelled leaves room for another")
	}
}

func TestTheHigherPriorityStartsFirstThenTheEarlier(t *testing.T) {
	h := newHost(t, config())
	for i, priority := range []int{0, 5, 0, 5, -1} {
		h.Offer(h.now, Request{ID: fmt.Sprint(i), Wants: []float64{1, 1}, Priority: priority, Expires: h.now.Add(time.Minute)})
	}
	if d := h.tick(); !slices.Equal(started(d), []string{"1", "3", "0", "2"}) { // 4 in a tick
		t.Errorf("started %v", started(d))
	}
	if d := h.tick(); !slices.Equal(started(d), []string{"4"}) {
		t.Errorf("started %v", started(d))
	}
}

func TestATaskThatDoesNotFitIsPassedASetNumberOfTimes(t *testing.T) {
	c := config()
	c.Resources[0].Ratio, c.Passes, c.Starts = 0.25, 3, 1 // 16 cores
	h := newHost(t, c)
	h.add("runs", Second, 0)
	h.tasks[0].Holds[0] = 10
	h.offer("large", 8)
	for i := range 5 {
		h.offer(fmt.Sprint(i), 1)
	}
	var all []string
	for range 6 {
		all = append(all, started(h.tick())...)
	}
	if !slices.Equal(all, []string{"0", "1", "2"}) {
		t.Fatalf("started %v", all)
	}
	h.tasks = nil // its room is free, and that of those that were never seen soon is
	for range 12 {
		all = append(all, started(h.tick())...)
	}
	if all[3] != "large" {
		t.Errorf("started %v", all)
	}
}

// "A speculative grant is a lease: it ends by itself unless renewed."
func TestAGrantEndsUnlessItIsRenewed(t *testing.T) {
	c := config()
	c.MaxLease = 20 * time.Second
	h := newHost(t, c)
	h.metrics[0] = 1 // keep it in the queue
	h.offer("waits", 1)
	h.Offer(h.now, Request{ID: "brief", Wants: []float64{1, 1}, Expires: h.now.Add(5 * time.Second)})
	h.add("runs", Second, 0)
	h.add("endless", Second, 0)
	h.tasks[0].Expires = h.now.Add(8 * time.Second)
	h.tasks[1].Expires = h.now.Add(1000 * time.Hour)
	ended := map[string]int{}
	for i := range 30 {
		if i == 10 {
			h.Renew("waits", h.now.Add(time.Hour))
		}
		for _, e := range h.tick().End {
			if _, known := ended[e.Task]; !known {
				ended[e.Task] = i + 1
			}
		}
	}
	// MaxLease counts from when the end was last set: that of "waits" from second 10.
	if want := map[string]int{"brief": 5, "runs": 8, "endless": 21, "waits": 30}; fmt.Sprint(ended) != fmt.Sprint(want) {
		t.Errorf("ended %v, want %v", ended, want)
	}
}

// "… the 1st class cores consisting of the amount requested by LRAs and the number of
// slack cores … The remaining cores in the machine are 2nd class" (6.2).
func TestTheFirstClassIsWhatLRAsRequestedAndTheSlack(t *testing.T) {
	for _, c := range []struct {
		cores     int
		requested []float64
		slack     int
		want      Classes
	}{
		{16, []float64{4, 2.5}, 2, Classes{9, 7}},
		{16, []float64{0.1, 0.2, 0.7}, 0, Classes{1, 15}}, // 1.0000000000000002
		{16, []float64{15}, 4, Classes{16, 0}},
		{16, nil, 4, Classes{0, 16}},
		{16, []float64{math.NaN()}, 0, Classes{16, 0}},
		{16, []float64{-1}, 0, Classes{16, 0}},
		{-3, []float64{1}, 1, Classes{0, 0}},
	} {
		if got := Classify(c.cores, c.requested, c.slack); got != c.want {
			t.Errorf("%d cores, requested %v, slack %d: %+v, want %+v", c.cores, c.requested, c.slack, got, c.want)
		}
	}
}

// "… incoming speculative tasks will be preferably restricted to the 2nd class cores"
// (6.2).
func TestATaskGoesToTheSecondClassFirst(t *testing.T) {
	for _, keep := range []bool{false, true} {
		c := config()
		c.KeepFirst = keep
		h := newHost(t, c)
		h.add("runs", Second, 0) // 16 cores, 4 requested and 2 slack: 10, of which 1 is taken
		h.tick()
		h.offer("a", 5)
		h.offer("b", 5)
		h.offer("c", 4)
		got := ""
		for _, s := range h.tick().Start {
			got += s.ID + " " + string(s.Class) + ", "
		}
		if want := map[bool]string{false: "a second, b first, c second, ", true: "a second, c second, "}[keep]; got != want {
			t.Errorf("keep the first class %v: %q, want %q", keep, got, want)
		}
	}
}

// "When the regular tasks request to revoke resources, task preemption will occur"
// (6.1); "… the eviction order will be reversed" (6.2).
func TestRegularTasksTakeBackFromTheFirstClassAndTheLeastProgress(t *testing.T) {
	h := newHost(t, config())
	h.add("second, little", Second, 0.1)
	h.add("first, much", First, 0.9)
	h.add("second, much", Second, 0.8)
	h.add("first, little", First, 0.2)
	h.tick()
	ask := func(revoke ...float64) (ids []string) {
		o := h.observe()
		o.Revoke = revoke
		for _, e := range h.Decide(o).End {
			ids = append(ids, e.Task)
		}
		return ids
	}
	for _, nothing := range [][]float64{nil, {0, 0}, {math.NaN(), math.Inf(1)}, {-1}} {
		if got := ask(nothing...); len(got) != 0 {
			t.Fatalf("asked for %v: ended %v", nothing, got)
		}
	}
	if got := ask(1.5); !slices.Equal(got, []string{"first, little", "first, much"}) {
		t.Errorf("ended %v", got)
	}
	// They still hold 2, and count for that.
	if got := ask(2.5); !slices.Equal(got, []string{"first, much", "first, little", "second, little"}) {
		t.Errorf("ended %v", got)
	}
	if got := ask(); len(got) != 3 || h.Counts().Preempted != 3 { // said again until they are gone
		t.Errorf("ended %v, %+v", got, h.Counts())
	}
}

func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(c *Config){
		"threshold": func(c *Config) { c.Metrics[0].Upper = math.NaN() },
		"ratio":     func(c *Config) { c.Resources[0].Ratio = -1 },
		"cpu":       func(c *Config) { c.CPU = 2 },
		"queue":     func(c *Config) { c.Queue = -1 },
		"cut":       func(c *Config) { c.Proof.Cut = 1 },
		"error":     func(c *Config) { c.Proof.WrongConviction = 0.5 },
		"hold":      func(c *Config) { c.Proof.Hold, c.Proof.MaxHold = 2*time.Hour, time.Hour },
		"many":      func(c *Config) { c.Metrics = make([]Metric, MaxDimensions+1) },
	} {
		c := config()
		spoil(&c)
		if _, err := New(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
