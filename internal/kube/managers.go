package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Managers says who set last what trimtab may set too, by an object's metadata.managedFields: the
// number of pods of a workload, and the resources of a pod that was resized. Everything else is
// dropped when the object is decoded: of the pods of a cluster nearly all have nothing here.
//
// An entry tells who wrote a field last. It does not prove that its writer is still there.
type Managers []Manager

// Manager is one writer.
type Manager struct {
	Name string
	// Subresource through which it wrote: scale, resize, or "" for the object itself.
	Subresource string
	// Fields are replicas, RESOURCE of the pod itself, or CONTAINER/RESOURCE, in order.
	Fields []string
}

// Bounds of what is kept of one object, whatever its managedFields say.
const (
	mostManagers   = 16
	mostManaged    = 64
	longestManager = 128 // the server allows no longer names
)

// managedEntry is an entry of managedFields, with the fields that are read.
type managedEntry struct {
	Manager     json.RawMessage `json:"manager"`
	Subresource json.RawMessage `json:"subresource"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

// UnmarshalJSON reads managedFields. What it cannot read it leaves out, since an object is worth
// reading whatever stands here.
func (m *Managers) UnmarshalJSON(b []byte) error {
	*m = nil
	if !bytes.Contains(b, []byte(`"f:replicas"`)) && !bytes.Contains(b, []byte(`"resize"`)) {
		return nil
	}
	var entries []json.RawMessage
	if json.Unmarshal(b, &entries) != nil {
		return nil //nolint:nilerr // see above
	}
	for _, raw := range entries {
		var e managedEntry
		if json.Unmarshal(raw, &e) != nil || len(*m) == mostManagers {
			continue
		}
		one := Manager{Name: textOf(e.Manager), Subresource: textOf(e.Subresource)}
		if one.Name == "" || one.Name == FieldManager {
			continue
		}
		if one.Fields = managed(e.FieldsV1, one.Subresource); len(one.Fields) > 0 {
			*m = append(*m, one)
		}
	}
	return nil
}

// textOf returns a text of JSON, "" if it is none or too long for one of managedFields.
func textOf(raw json.RawMessage) (text string) {
	if len(raw) > longestManager+2 || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// managed returns what trimtab may set of the fields of an entry.
func managed(fields json.RawMessage, subresource string) (all []string) {
	spec := within(fields, "f:spec")
	switch {
	case subresource == "resize":
	case spec["f:replicas"] != nil:
		return []string{"replicas"}
	default:
		return nil // who made a pod is no owner of its size
	}
	add := func(prefix string, resources json.RawMessage) {
		for _, part := range []string{"f:limits", "f:requests"} {
			for name := range within(resources, part) {
				field := prefix + strings.TrimPrefix(name, "f:")
				if len(all) < mostManaged && len(field) < 2*longestManager && !slices.Contains(all, field) {
					all = append(all, field)
				}
			}
		}
	}
	add("", spec["f:resources"])
	for key, container := range within(spec["f:containers"]) {
		var k struct {
			Name string `json:"name"`
		}
		if name, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(name), &k) == nil && k.Name != "" {
			add(k.Name+"/", within(container)["f:resources"])
		}
	}
	slices.Sort(all)
	return all
}

// within returns the members of an object, or of those inside it that path names; nil if there is no
// such object.
func within(raw json.RawMessage, path ...string) (members map[string]json.RawMessage) {
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	for _, name := range path {
		if members = within(members[name]); members == nil {
			return nil
		}
	}
	return members
}

// by returns the manager that set a field last, nil if none is known.
func (m Managers) by(field string) *Manager {
	return first(m, func(o *Manager) bool { return slices.Contains(o.Fields, field) })
}

// people are tools with which persons change one object. What they set may be set again: see
// foreign_hold.
func people(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || manager == "k9s" || manager == "Mozilla"
}

// watchedOwner reports whether a manager writes for an object that is watched here, which tells more
// than its name: it stays in managedFields after the object is gone.
func watchedOwner(manager string) bool {
	// HorizontalPodAutoscaler; updater of VerticalPodAutoscaler.
	return manager == "kube-controller-manager" || manager == "updater" || strings.HasPrefix(manager, "updater-")
}

// productOf returns the object for which a manager is known to write, "" if none is.
func productOf(manager string) string {
	if manager == "datadog-cluster-agent" {
		return "DatadogPodAutoscaler"
	}
	return ""
}

// productOfOwner returns the product to which a kind of object belongs that makes workloads, "" if it
// is not known.
func productOfOwner(o *Owner) string {
	switch group, _, _ := strings.Cut(o.APIVersion, "/"); {
	case group == "serving.kserve.io":
		return "KServe"
	case group == "workload.serving.volcano.sh":
		return "Kthena"
	case group == "nvidia.com" && strings.HasPrefix(o.Kind, "Dynamo"):
		return "Dynamo"
	}
	return ""
}

// HeldBy names the controller that set a field last, with how it is known; "": none did. Managers in
// except do not count. A field that was set in the object itself is held only by a manager that is
// known to turn it, or if another object owns this one: otherwise its writer may be whoever deployed
// it.
func (m *Meta) HeldBy(field string, except []string) string {
	by := m.Managers.by(field)
	if by == nil || people(by.Name) || watchedOwner(by.Name) || slices.Contains(except, by.Name) {
		return ""
	}
	owner, owned := m.controller()
	product := productOf(by.Name)
	if by.Subresource == "" && product == "" && !owned {
		return ""
	}
	what, own := field, ""
	if i := strings.LastIndexByte(field, '/'); i >= 0 {
		what = field[i+1:]
	}
	switch {
	case product != "":
		own = product
	case owned && by.Subresource == "":
		own = strings.TrimSpace(fmt.Sprintf("%s %s %s/%s", productOfOwner(&owner), owner.Kind, m.Namespace, owner.Name))
	default:
		return fmt.Sprintf("controller %s sets its %s (metadata.managedFields)", by.Name, what)
	}
	return fmt.Sprintf("%s sets its %s (field manager %s)", own, what, by.Name)
}

// SetBy names whoever set a field last, "" if that is not known.
func (m *Meta) SetBy(field string) string {
	if by := m.Managers.by(field); by != nil {
		return by.Name
	}
	return ""
}
