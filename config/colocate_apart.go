package config

import (
	"fmt"
	"strings"
)

// RegisteredJobs is the name for all jobs that register themselves: their
// IDs are jobs/NAME.
const RegisteredJobs = "jobs"

// jobsApart refuses names under which two jobs, or a job and a service, would be one,
// and jobs in the control groups of services.
func (v *validator) jobsApart() {
	if v.config.Colocate == nil {
		return
	}
	several := map[string]bool{} // names whose jobs are called NAME/INSTANCE
	for i := range v.config.Workloads {
		if w := &v.config.Workloads[i]; v.config.IsJob(w) && w.Knob.Several() {
			several[w.Name] = true
		}
	}
	for i := range v.config.Workloads {
		w, at := &v.config.Workloads[i], fmt.Sprintf("workloads[%d]", i)
		if w.Name == RegisteredJobs || strings.HasPrefix(w.Name, RegisteredJobs+"/") {
			v.fail(at+".name", fmt.Sprintf("the name %q is that of best-effort jobs that register themselves", clip(w.Name)),
				"give it another name, or remove the section colocate")
		}
		if !v.config.IsJob(w) {
			continue
		}
		for j, c := range w.Name {
			if c == '/' && several[w.Name[:j]] {
				v.fail(at+".name", fmt.Sprintf("job %q may have the name of an instance of %q", clip(w.Name), clip(w.Name[:j])), "give one of them another name")
			}
		}
		w.checkJobOfComponent(v, at)
	}
}

// checkJobOfComponent refuses a job in, or above, the control group of a component that is
// watched.
func (w *Workload) checkJobOfComponent(v *validator, at string) {
	for _, group := range v.config.componentGroups() {
		if meet(strings.Split(plainGroup(w.Knob.Cgroup), "/"), strings.Split(plainGroup(group), "/")) {
			v.fail(at+".knob.cgroup", fmt.Sprintf("cgroup %q is, or can be, that of the component in %q, or one above or below it", clip(w.Knob.Cgroup), clip(group)),
				"declare the groups of the jobs alone: a job is cut to next to nothing, with all that is in its group")
			return
		}
	}
}

// componentGroups lists the control groups of the components that are watched.
func (c *Config) componentGroups() (all []string) {
	for i := range c.Sockets.Components {
		if group := strings.Trim(c.Sockets.Components[i].Cgroup, "/"); group != "" {
			all = append(all, group)
		}
	}
	return all
}

// ServiceGroups lists the control groups that the file names, perhaps with a *: of
// workloads and of components. No job that registers itself may be one of them.
func (c *Config) ServiceGroups() (all []string) {
	for i := range c.Workloads {
		if group := c.Workloads[i].Knob.Cgroup; group != "" {
			all = append(all, group)
		}
	}
	return append(all, c.componentGroups()...)
}
