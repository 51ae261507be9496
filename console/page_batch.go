package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// shownTasks bounds the tasks that the page of a job draws.
const shownTasks = 200

// batchPage is the data of batch.html: all jobs and hosts, or one job.
type batchPage struct {
	Frame frame
	view.Batch
	// Job is the requested job, and Name its name; nil: it is not known.
	Job  *view.JobState
	Name string
	// More counts tasks that are not drawn.
	More int
}

// Machines returns how many hosts accept tasks now.
func (p *batchPage) Machines() (n int) {
	for i := range p.Hosts {
		if !p.Hosts[i].Silent && p.Hosts[i].Blocked == "" {
			n++
		}
	}
	return n
}

// Tasks has the tasks of the job that the page draws.
func (p *batchPage) Tasks() []view.TaskState {
	tasks, _ := p.Frame.Sorted("tasks", p.Job.Tasks).([]view.TaskState)
	return tasks[:min(len(tasks), shownTasks)]
}

func (s *site) drawBatch(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("job")
	p := batchPage{Frame: s.frame(r, "batch", "Speculative jobs", "/api/v1/batch"), Batch: s.view.Batch(time.Now()), Name: name}
	code := http.StatusOK
	if name != "" {
		j, ok := s.view.BatchJob(name)
		if !ok {
			code = http.StatusNotFound
		} else {
			p.Job, p.More = j, len(j.Tasks)-min(len(j.Tasks), shownTasks)+j.Omitted
			p.Frame.Title, p.Frame.JSON = name+" · trimtab", "/api/v1/batch/"+url.PathEscape(name)
		}
	}
	s.render(w, code, "batch.html", &p)
}

// batchAt is the page of one job.
func batchAt(job string) string { return "/batch?job=" + url.QueryEscape(job) }
