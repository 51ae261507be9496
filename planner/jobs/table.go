package jobs

import (
	"slices"

	"github.com/trimtab/trimtab/speculation"
)

// table has all jobs.
type table struct {
	byName map[string]*job
	order  []*job // by descending priority, then in the order of submission
	tasks  int    // of all jobs
}

// enter inserts a job.
func (all *table) enter(j *job) {
	all.byName[j.name] = j
	all.tasks += len(j.tasks)
	at, _ := slices.BinarySearchFunc(all.order, j, func(a, b *job) int {
		if a.Priority > b.Priority || a.Priority == b.Priority && a.serial < b.serial {
			return -1
		}
		return 1
	})
	all.order = slices.Insert(all.order, at, j)
}

// remove removes a job.
func (all *table) remove(j *job) {
	delete(all.byName, j.name)
	all.order = slices.DeleteFunc(all.order, func(o *job) bool { return o == j })
	all.tasks -= len(j.tasks)
	j.forgotten = true
}

// over returns the ended jobs, the oldest first, that must be deleted so that a new job with so
// many tasks, which replaces old, fits.
func (all *table) over(old *job, tasks int, c *Config) ([]*job, error) {
	count, kept := len(all.order), all.tasks
	if old != nil {
		count, kept = count-1, kept-len(old.tasks)
	}
	var over []*job
	for _, j := range all.order {
		if !j.ended.IsZero() && j != old {
			over = append(over, j)
		}
	}
	slices.SortFunc(over, func(a, b *job) int { return a.ended.Compare(b.ended) })
	n := 0
	for ; (count >= c.MaxJobs || kept+tasks > c.MaxTasks) && n < len(over); n++ {
		count, kept = count-1, kept-len(over[n].tasks)
	}
	if count >= c.MaxJobs || kept+tasks > c.MaxTasks {
		return nil, refusedf("%d jobs with %d tasks have not ended: %d more tasks would be beyond %d jobs, %d tasks", count, kept, tasks, c.MaxJobs, c.MaxTasks)
	}
	return over[:n], nil
}

// named returns the job of a request. It is an error if the job has ended.
func (all *table) named(r *speculation.JobRequest) (*job, error) {
	j := all.byName[r.Job.Name]
	switch {
	case j == nil:
		return nil, refusedf("there is none of this name")
	case !j.ended.IsZero():
		return nil, refusedf("it has ended: %s", j.how())
	}
	return j, nil
}

// task returns the task that a request names.
func (all *table) task(r *speculation.JobRequest) (*job, int32, error) {
	j, err := all.named(r)
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(j.Tasks, func(t speculation.BatchTask) bool { return t.Name == r.Task })
	switch {
	case i < 0:
		return nil, 0, refusedf("it has no task %.63q", r.Task)
	case j.tasks[i].ended():
		return nil, 0, refusedf("task %s has ended", r.Task)
	case j.cancelled != "":
		return nil, 0, refusedf("it is %s", j.cancelled)
	}
	return j, int32(i), nil
}
