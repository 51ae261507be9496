package jobs

import "github.com/trimtab/trimtab/speculation"

// changes collects what the next tick publishes about jobs.
type changes struct {
	told      []*job // whose states are published
	rated     []*job
	forgotten []string
	events    []Event
}

// state makes the next tick publish the state of a job, or a later one if a state was published
// just now.
func (c *changes) state(j *job) {
	j.stale = true
	if !j.quiet && !j.fresh {
		j.fresh = true
		c.told = append(c.told, j)
	}
}

func (c *changes) event(kind EventKind, id speculation.AttemptID, host, text string) {
	c.events = append(c.events, Event{Kind: kind, AttemptID: id, Host: host, Text: text})
}

// penalise counts against its machine an attempt that failed, crashed, straggled or was killed
// there (algorithm 3). Each attempt counts once.
func (c *changes) penalise(a *attempt) {
	j := a.job
	if a.counted || len(j.penalties) >= maxPenalised && j.penalties[a.host.name] == 0 {
		return
	}
	a.counted = true
	if j.penalties == nil {
		j.penalties = map[string]int{}
	}
	j.penalties[a.host.name]++
	if !j.rated {
		j.rated = true
		c.rated = append(c.rated, j)
	}
}

// maxPenalised is the largest number of machines for which one job has such counts.
const maxPenalised = 2000
