package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This file sets the SLO of a workload from where others keep it: slo.file or slo.object.

// Objects reads an objective that is an object of a cluster, KIND NAMESPACE/NAME, as the
// text that a file of its tool would have.
type Objects func(of Kubernetes, object string) (text []byte, err error)

// objectiveKinds are the kinds of objects that say an objective.
func objectiveKinds() []string {
	return []string{"SLO", "PrometheusServiceLevel", "ServiceLevelObjective"}
}

// objectParts are an object, and its kind; nil: it is not written as one.
func objectParts(text string) []string {
	return regexp.MustCompile(`^([A-Za-z]+) [a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).FindStringSubmatch(text)
}

// elsewhere is where the objective of a workload is said.
type elsewhere struct {
	// key is file or object, source its value, list the command that lists mistakes.
	key, source, list string
}

// importSLO sets what a file or an object says of a workload.
func (w *Workload) importSLO(v *validator, at, key string) {
	where := at + ".slo"
	from := elsewhere{key: key, source: w.SLO.File}
	if key == "object" {
		from.source = w.SLO.Object
	}
	for _, other := range []string{"latency", "fraction", "performance", "file"} {
		if other != key && v.has(where+"."+other) {
			v.fail(where+"."+other, fmt.Sprintf("slo has both %s and %s", articled(key), articled(other)), fmt.Sprintf("keep one: the %s says it", key))
			return
		}
	}
	var data []byte
	var ok bool
	if key == "object" {
		data, ok = w.objectText(v, at)
		from.list = "trimtab import slo --kubernetes=NAMESPACE"
	} else {
		data, ok = w.fileText(v, where)
		from.list = "trimtab import slo " + clip(w.SLO.File)
	}
	if ok {
		w.adopt(v, at, from, data)
	}
}

func articled(key string) string {
	if key == "object" {
		return "an " + key
	}
	return "a " + key
}

// fileText reads slo.file.
func (w *Workload) fileText(v *validator, where string) (data []byte, ok bool) {
	if v.from.file == nil {
		v.fail(where+".file", "slo.file can be read only where the configuration is a file", "write the configuration to a file")
		return nil, false
	}
	data, err := v.from.file(w.SLO.File)
	if err != nil {
		v.fail(where+".file", fmt.Sprintf("file names %s, which cannot be read: %v", clip(w.SLO.File), causeOf(err)), "write a file of OpenSLO, Sloth or Pyrra: it is relative to this file's directory")
		return nil, false
	}
	return data, true
}

// objectText reads slo.object, where objects are read.
func (w *Workload) objectText(v *validator, at string) (data []byte, ok bool) {
	where := at + ".slo.object"
	parts := objectParts(w.SLO.Object)
	switch {
	case parts == nil:
		v.fail(where, fmt.Sprintf("object is %q, want KIND NAMESPACE/NAME", clip(w.SLO.Object)), "write it as kubectl names it, such as PrometheusServiceLevel shop/checkout")
		return nil, false
	case !slices.Contains(objectiveKinds(), parts[1]):
		v.fail(where, fmt.Sprintf("kind %s says no objective", clip(parts[1])), suggest(parts[1], objectiveKinds()))
		return nil, false
	case v.from.objects == nil:
		// The content is not known here, so a key that it may give is not reported as missing.
		for _, key := range []string{".slo", ".performance", ".load"} {
			v.meant[at+key] = true
		}
		v.warn(where, fmt.Sprintf("%s was not looked up", w.SLO.Object), "trimtab check config --live looks it up")
		return nil, false
	}
	data, err := v.from.objects(v.config.Kubernetes, w.SLO.Object)
	if err != nil {
		v.fail(where, fmt.Sprintf("%s cannot be read: %v", w.SLO.Object, causeOf(err)), "trimtab check kubernetes says what is missing: the object, a right, or the API server")
		return nil, false
	}
	return data, true
}

// adopt sets what the text of an objective says of a workload.
func (w *Workload) adopt(v *validator, at string, from elsewhere, data []byte) {
	where := at + ".slo." + from.key
	files := []ObjectiveFile{{Name: from.source, Data: data}}
	all, _, err := ReadObjectiveFiles(files, DefaultWindow)
	if err != nil && from.key == "file" && v.from.beside != nil {
		// An SLO of OpenSLO may have its indicator in a file beside it.
		if found, _, again := ReadObjectiveFiles(append(files, v.from.beside(from.source)...), DefaultWindow); again == nil {
			all, err = found, nil
		}
	}
	if err != nil {
		v.fail(where, fmt.Sprintf("the %s has mistakes: %s", from.key, clip(firstLine(err.Error()))), from.list+" lists them")
		return
	}
	o, names := choose(all, w.SLO.Name)
	switch {
	case o == nil && w.SLO.Name == "":
		v.fail(where, fmt.Sprintf("the %s has %d objectives", from.key, len(all)), "say which with name: one of "+clip(strings.Join(names, ", ")))
		return
	case o == nil:
		v.fail(at+".slo.name", fmt.Sprintf("the %s has no objective %q", from.key, clip(w.SLO.Name)), suggest(w.SLO.Name, names))
		return
	case v.config.Prometheus.URL == "" && !(v.has(at+".performance") && (o.Load == "" || v.has(at+".load"))):
		v.fail(where, "there is no Prometheus to ask", "write prometheus: {url: http://127.0.0.1:9090} at the top of the file")
		return
	}
	asked := w.SLO
	w.SLO = o.SLO
	if from.key == "object" {
		w.SLO.Object, w.SLO.Name = asked.Object, asked.Name // it is looked up again
	}
	w.Performance = cmp.Or(w.Performance, o.Performance)
	w.Load = cmp.Or(w.Load, o.Load)
	for _, note := range o.Notes {
		v.warn(where, note, "see trimtab import slo")
	}
}

// choose returns the objective of that name, or the only one; names lists all.
func choose(all []Objective, name string) (one *Objective, names []string) {
	for i := range all {
		names = append(names, all[i].Name)
		if all[i].Name == name {
			one = &all[i]
		}
	}
	if name == "" && len(all) == 1 {
		one = &all[0]
	}
	return one, names
}
