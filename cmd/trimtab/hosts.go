package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
)

// fewHosts and fewInstances are how many hosts and instances are printed, those with the least
// free first; -o wide has all hosts, -o json all instances.
const fewHosts, fewInstances = 20, 20

// printHosts prints the hosts with the least free, where there is more than one or
// something was measured.
func printHosts(w io.Writer, all []view.Host, most int) {
	if len(all) < 2 && !measured(all) {
		return
	}
	rows := [][]string{{"HOST", "FREE", "KNOBS", "LEASE", "STATE"}}
	for i := range all[:min(len(all), most)] {
		h := &all[i]
		lease := view.Missing
		if h.LeaseLeft > 0 {
			lease = view.Age(h.LeaseLeft)
		}
		rows = append(rows, []string{h.Name, freeOn(h), fmt.Sprint(h.Knobs), lease, h.State + binds(h)})
	}
	fmt.Fprintln(w)
	cli.Table(w, rows)
	if left := len(all) - most; left > 0 {
		fmt.Fprintf(w, "and %s with more free: trimtab status -o wide\n", view.Count(left, "host"))
	}
}

// binds returns how many workloads a host limits, as a text.
func binds(h *view.Host) string {
	if h.Binds == 0 {
		return ""
	}
	return ", limits " + view.Count(h.Binds, "workload")
}

func measured(all []view.Host) bool {
	for i := range all {
		if all[i].Spare() <= 1 {
			return true
		}
	}
	return false
}

// freeOn formats the unallocated part of a host's capacity.
func freeOn(h *view.Host) string {
	var out []string
	for _, r := range h.Resources {
		if r.Free == nil {
			continue
		}
		out = append(out, view.AmountIn(trimtab.Units(*r.Free), r.Resource)+" of "+view.Sized(*r.Capacity, r.Resource))
	}
	if len(out) == 0 {
		return view.Missing
	}
	return strings.Join(out, ", ")
}

// instanceLines formats the allocation of each of several instances.
func instanceLines(e *view.Explanation) (out [][2]string) {
	for i := range e.Knobs {
		if i == fewInstances {
			out = append(out, [2]string{"", fmt.Sprintf("and %d more: trimtab explain -o json", len(e.Knobs)-i+e.Omitted)})
			break
		}
		out = append(out, instanceLine(&e.Knobs[i], e.Resource))
	}
	return out
}

func instanceLine(k *view.Knob, main string) [2]string {
	name := "on " + k.Host
	if k.Instance != "" {
		name += ", " + k.Instance
	}
	has := view.AmountIn(k.InForce(), k.Resource)
	if !trimtab.ResourceOf(k.Resource).Bytes {
		has += " " + view.Unit(k.Resource)
	} else if k.Resource != main {
		has += " of " + k.Resource
	}
	if k.Effective != nil {
		has += fmt.Sprintf(" (%s pending)", view.AmountIn(k.Now, k.Resource))
	}
	if k.Least {
		has += ", the slowest instance"
	}
	if k.Bound {
		has += ", limited by its host"
	}
	return [2]string{name, has + prefixed(", ", k.Knob) + prefixed("; cannot be used: ", k.Problem) + prefixed("; its host has been silent for ", k.Silent)}
}

// withEach adds to a row the changes of each of several instances, if any.
func withEach(row []string, each string) []string {
	if each == "" {
		return row
	}
	return append(row, each)
}
