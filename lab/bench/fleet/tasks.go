package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/speculation"
)

// tasksText is the part of the configuration that has the real agent run speculative tasks,
// in mode RP: it measures its services each second.
func (f *fleet) tasksText() string {
	return fmt.Sprintf("beside: {tasks: {user: nobody, programs: [/bin/sleep, /usr/bin/sleep], tasks: %d, slack: 0, thresholds: {cpu: 100, memory: 100}, ratio: {cpu: 100, memory: 1}}, manager: {thresholds: {cpu: 1}, weights: {cpu: 1}, worst: 0}}\n", f.Tasks)
}

// taskGroups makes the root of the real agent in every hierarchy in which tasks are.
func (f *fleet) taskGroups(root string) (err error) {
	f.every, err = cgroup.Create(root, filepath.Base(f.root), "freezer", "memory", "pids", "cpuset")
	return err
}

// removeTaskGroups undoes taskGroups: the groups of the classes stay, empty, when an agent
// ends.
func (f *fleet) removeTaskGroups() {
	if f.every == nil {
		return
	}
	for _, class := range []string{"oversubscribed", "regular", "."} {
		all, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", filepath.Base(f.root), "trimtab", class)) // the pattern is good
		for _, dir := range all {
			_ = os.Remove(dir)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := f.every.Remove(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fleet: remove groups:", err)
	}
}

// submit has the job manager place as many tasks that sleep, and waits until they run.
func (f *fleet) submit(ctx context.Context) error {
	if f.Tasks == 0 {
		return nil
	}
	var console *part
	for _, p := range f.parts {
		if p.name == "console" {
			console = p
		}
	}
	c := client.Client{URL: "http://" + console.web}
	job := speculation.BatchJob{Name: "sleep"}
	for i := range f.Tasks {
		job.Tasks = append(job.Tasks, speculation.BatchTask{Name: fmt.Sprintf("t-%d", i+1),
			TaskSpec: speculation.TaskSpec{Command: []string{"/bin/sleep", "100000"}, Cores: 0.01, Memory: 32 << 20}})
	}
	if _, err := c.JobRequest(ctx, speculation.JobRequest{Verb: speculation.SubmitJob, By: "fleet", Job: job}); err != nil {
		return fmt.Errorf("submit job: %w", err)
	}
	return console.until(ctx, patience, func() error {
		j, err := c.BatchJob(ctx, job.Name)
		if err == nil && j.Running < f.Tasks {
			err = fmt.Errorf("%d of %d tasks run, %q: %w", j.Running, f.Tasks, j.Problem, rig.ErrAnswer)
		}
		return err
	})
}

// helpers is what the other processes of the agent's program take that it started, as its
// watchdogs and the one that counts: CPU in seconds, and in MiB the memory that is not of the
// program, which all share.
func (p *part) helpers() (n int, cpu, resident float64) {
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.cmd.Process.Pid)) // "" of one that ended: no other has it
	all, _ := filepath.Glob("/proc/[0-9]*/exe")                               // the pattern is good
	for _, exe := range all {
		at := filepath.Dir(exe)
		pid, _ := strconv.Atoi(filepath.Base(at)) // the pattern is of numbers
		if of, err := os.Readlink(exe); err != nil || of != program || int(rig.Number(at+"/status", "PPid:")) != p.cmd.Process.Pid {
			continue
		}
		used, err := (&part{name: p.name, log: p.log, pid: pid}).cpu()
		if err != nil {
			continue // it ended
		}
		n, cpu, resident = n+1, cpu+used, resident+rig.Number(at+"/status", "RssAnon:")/1024
	}
	return n, cpu, resident
}

// printHelpers prints them.
func (p *part) printHelpers() {
	if n, cpu, resident := p.helpers(); n > 0 {
		fmt.Printf("           its %d helpers have used %.1f s of CPU, and have %.1f MiB of their own\n", n, cpu, resident)
	}
}
