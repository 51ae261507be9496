package colocation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/valid"
)

// onHost is how jobs stand on a host, with every field set.
func onHost() *colocation.Colocation {
	v, age := 0.5, trimtab.Seconds(1)
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	d := colocation.HostDecision{Time: at, Verb: "CutBE", By: "web", Why: "slack 0.05", Periods: 1,
		Changes: []colocation.JobChange{{Job: "batch/1", Act: "cut", To: map[string]float64{"cpu": .5}, Result: "written"}}}
	return &colocation.Colocation{Host: "h", Pool: colocation.JobsPool("p"), Policy: "rhythm", Mode: trimtab.Act, Time: at, Period: 2, Last: &d,
		Services: []colocation.ServiceHere{{Workload: "web", Age: &age, Slack: &v, Tail: &age, SLO: 1, Load: &v, Share: .5, LoadLimit: &v, LoadOrigin: "history", SlackLimit: &v, SlackOrigin: "search"}},
		Jobs:     []colocation.Job{{ID: "batch/1", Mode: trimtab.Act, State: "running", Has: map[string]float64{"cpu": .5}, Location: "cgroup v2 batch/1", Done: &v, Loss: &v, ReportAge: &age}}, Running: 1,
		Capacity: map[string]float64{"cpu": 3}, Used: map[string]float64{"cpu": .5}, Missing: map[string]string{"llc": "no resctrl"}, Counts: map[string]uint64{"CutBE": 1},
		Kills: 1, Lost: 2, Given: 3, Reclaimed: 4, Decisions: []colocation.HostDecision{d}}
}

func TestAColocationThatMakesNoSenseIsRefused(t *testing.T) {
	if err := onHost().Validate(); err != nil {
		t.Fatal(err)
	}
	nan, long := math.NaN(), strings.Repeat("x", valid.MaxText+1)
	for name, spoil := range map[string]func(*colocation.Colocation){
		"no host":   func(c *colocation.Colocation) { c.Host = "" },
		"no pool":   func(c *colocation.Colocation) { c.Pool = "" },
		"no time":   func(c *colocation.Colocation) { c.Time = time.Time{} },
		"capacity":  func(c *colocation.Colocation) { c.Capacity["cpu"] = nan },
		"used":      func(c *colocation.Colocation) { c.Used["cpu"] = -1 },
		"lost":      func(c *colocation.Colocation) { c.Lost = math.Inf(1) },
		"given":     func(c *colocation.Colocation) { c.Given = -1 },
		"running":   func(c *colocation.Colocation) { c.Running = -1 },
		"power":     func(c *colocation.Colocation) { c.Power = &colocation.PowerHere{Draws: nan} },
		"link":      func(c *colocation.Colocation) { c.Link = &colocation.LinkHere{Used: -1} },
		"clock":     func(c *colocation.Colocation) { c.Services[0].Clock = nan },
		"slack":     func(c *colocation.Colocation) { c.Services[0].Slack = &nan },
		"load":      func(c *colocation.Colocation) { c.Services[0].Load = &nan },
		"service":   func(c *colocation.Colocation) { c.Services[0].Workload = "" },
		"job":       func(c *colocation.Colocation) { c.Jobs[0].ID = long },
		"state":     func(c *colocation.Colocation) { c.Jobs[0].State = long },
		"problem":   func(c *colocation.Colocation) { c.Jobs[0].Problem = long },
		"loss":      func(c *colocation.Colocation) { c.Jobs[0].Loss = &nan },
		"amount":    func(c *colocation.Colocation) { c.Jobs[0].Has["cpu"] = nan },
		"why":       func(c *colocation.Colocation) { c.Last.Why = long },
		"verb":      func(c *colocation.Colocation) { c.Decisions[0].Verb = long },
		"change":    func(c *colocation.Colocation) { c.Decisions[0].Changes[0].To["cpu"] = nan },
		"many jobs": func(c *colocation.Colocation) { c.Jobs = make([]colocation.Job, colocation.MaxJobs+1) },
		"many decisions": func(c *colocation.Colocation) {
			c.Decisions = make([]colocation.HostDecision, colocation.MaxHostDecisions+1)
		},
		"decision no time": func(c *colocation.Colocation) { c.Decisions[0].Time = time.Time{} },
	} {
		c := onHost()
		if spoil(c); !errors.Is(c.Validate(), trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, c.Validate())
		}
	}
}

func TestWhatTravelsOfAHostFullOfJobsIsSmallAndSaysWhatItLeftOut(t *testing.T) {
	c := onHost()
	word := strings.Repeat("é", 5000)
	c.Problem, c.Missing["llc"] = word, word
	for i := range colocation.MaxJobs {
		c.Jobs = append(c.Jobs, colocation.Job{ID: fmt.Sprint("batch/", i+2), Problem: word, Location: word})
		c.Decisions[0].Changes = append(c.Decisions[0].Changes, colocation.JobChange{Job: "x", Result: word})
	}
	for range 2 * colocation.MaxHostDecisions {
		c.Decisions = append(c.Decisions, c.Decisions[0])
	}
	small := c.Brief()
	b, err := json.Marshal(small)
	if err != nil || small.Validate() != nil || len(b) > 900_000 {
		t.Fatalf("%d bytes, %v, %v", len(b), err, small.Validate())
	}
	if small.Omitted+len(small.Jobs) != len(c.Jobs) || small.Decisions[0].Omitted+len(small.Decisions[0].Changes) != len(c.Decisions[0].Changes) {
		t.Errorf("%d of %d jobs, %d omitted", len(small.Jobs), len(c.Jobs), small.Omitted)
	}
	if len(c.Jobs[0].Location) == 0 || c.Problem != word {
		t.Error("the original was changed")
	}
	if again := small.Brief(); again.Omitted != small.Omitted || len(again.Jobs) != len(small.Jobs) {
		t.Errorf("brief twice: %d jobs, %d omitted", len(again.Jobs), again.Omitted)
	}
}
